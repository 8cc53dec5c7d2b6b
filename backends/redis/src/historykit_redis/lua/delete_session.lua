-- Delete one life of a session with all that belongs to it.
-- ARGV: incarnation, user, index.

local wanted, user, index = unpack(ARGV)

local incarnation = redis.call('HGET', session, 'inc') or ''
if incarnation ~= wanted then return {'absent'} end
local deleted = record()
local count = redis.call('HLEN', ids)
for _, field in ipairs(redis.call('HKEYS', session)) do
  if string.sub(field, 1, 2) == 'n:' then
    local stream = string.sub(field, 3)
    redis.call('UNLINK', order_of(stream), turns_of(stream), large_of(stream))
  end
end
redis.call('UNLINK', unpack(KEYS))
if incarnation == '' then return {'absent'} end  -- what was left of it is gone now
if index ~= '' then
  index_remove({index .. 'all', index .. 'user:' .. user}, deleted[7])
  index_remove(index_keys(index, unpack(deleted, 2, 5)), deleted[7])
end
return {'ok', count, deleted}
