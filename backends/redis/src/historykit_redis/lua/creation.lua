-- Make a session. `packed` holds incarnation, agent, status, memory, labels, body, place, user, and
-- where the index is.
local function create(packed, now)
  local incarnation, agent, status, memory, labels, body, place, user, index =
    unpack(unpacked(packed))
  redis.call('HSET', session, 'inc', incarnation, 'agent', agent, 'status', status, 'mem', memory,
    'labels', labels, 'body', body, 'place', place, 'touched', now, 'ver', 0, 'rev', 0, 'edits', 0,
    'seq', 1)
  redis.call('UNLINK', ids, contents)  -- of a session whose hash was evicted or deleted by hand
  if index ~= '' then
    index_add({index .. 'all', index .. 'user:' .. user}, place)
    index_add(index_keys(index, agent, status, memory, labels), place)
  end
end
