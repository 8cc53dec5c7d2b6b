-- Change a session. ARGV from `at` on: names and values of the fields to set. Returns the record as
-- it is now and as it was.
local function change(operation, now, index, at)
  local before = record()
  if not outcome(operation) then
    redis.call('HINCRBY', session, 'rev', 1)
    redis.call('HSET', session, 'touched', now, unpack(ARGV, at))
    note(operation, 0)
  end
  local after = record()
  if index ~= '' then
    index_remove(index_keys(index, unpack(before, 2, 5)), before[7])
    index_add(index_keys(index, unpack(after, 2, 5)), after[7])
  end
  return {'ok', after, before}
end
