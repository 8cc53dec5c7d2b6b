-- Change a session. ARGV from `at` on: names and values of the fields to set. Returns all fields as
-- they are now, and as they were.
local function change(operation, now, index, user, at)
  local before, old_entry = redis.call('HGETALL', session), entry()
  if not outcome(operation) then
    redis.call('HINCRBY', session, 'rev', 1)
    redis.call('HSET', session, 'touched', now, unpack(ARGV, at))
    note(operation, 0)
  end
  index_remove(old_entry, index, user)
  index_add(entry(), index, user)
  return {'ok', redis.call('HGETALL', session), before}
end
