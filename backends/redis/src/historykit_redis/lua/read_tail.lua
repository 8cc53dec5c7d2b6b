-- The end of a stream, without its messages.
-- ARGV: stream, most digests.

local stream, most = ARGV[1], tonumber(ARGV[2])
local head = redis.call('HMGET', session, 'inc', 'ver', 'n:' .. stream, 'x:' .. stream)
if not head[1] then return {'absent'} end
if redis.call('ZCARD', KEYS[4]) ~= tonumber(head[3] or 0) then return {'damaged'} end
local digests = {}
for i, message in ipairs(redis.call('ZRANGE', KEYS[4], -most, -1)) do
  digests[i] = digest_of(message)
end
return {'ok', head[1], head[2], head[3] or 0, head[4] or 0, digests}
