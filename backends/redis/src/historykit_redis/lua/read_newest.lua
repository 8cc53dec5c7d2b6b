-- The newest message of a stream.
-- ARGV: stream.

local head = redis.call('HMGET', session, 'inc', 'n:' .. ARGV[1])
if not head[1] then return {'no message'} end
if redis.call('ZCARD', KEYS[4]) ~= tonumber(head[2] or 0) then return {'damaged'} end
local newest = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')
if not newest[1] then return {'no message'} end
return {'ok', newest[1], newest[2], has(flags_of(newest[1]), IS_LARGE)
  and redis.call('HGET', contents, newest[2])}
