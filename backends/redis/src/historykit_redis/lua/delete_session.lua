-- Delete one life of a session with all that belongs to it.
-- ARGV: incarnation, index, user.

local wanted, index, user = unpack(ARGV)

local fields = redis.call('HGETALL', session)
if (redis.call('HGET', session, 'inc') or '') ~= wanted then return {'absent'} end
local count = redis.call('HLEN', places)
if wanted ~= '' then index_remove(entry(), index, user) end
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'n:' then
    local stream = string.sub(fields[i], 3)
    redis.call('UNLINK', messages_of(stream), large_of(stream))
  end
end
redis.call('UNLINK', unpack(KEYS))  -- even where the hash was evicted or deleted by hand
if wanted == '' then return {'absent'} end
return {'ok', count, fields}
