-- Make a session. ARGV from `at` on: incarnation, agent, status, memory flag, labels, body, place,
-- where the index is, and the user.
local function create(at, now)
  local incarnation, agent, status, memory, labels, body, place, index, user =
    unpack(ARGV, at, at + 8)
  redis.call('HSET', session, 'inc', incarnation, 'agent', agent, 'status', status, 'mem', memory,
    'labels', labels, 'body', body, 'place', place, 'touched', now, 'ver', 0, 'rev', 0, 'edits', 0,
    'seq', 1)
  redis.call('UNLINK', places, contents)  -- of a session whose hash was evicted or deleted by hand
  index_add({place, agent, status, memory, labels}, index, user)
end
