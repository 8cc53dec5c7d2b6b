-- The catalogue of a namespace: sorted sets without scores, whose members are the places of
-- sessions in the order of a search. Each holds the sessions that one condition finds. `index` is
-- what the keys of the namespace begin with, and empty where they are in another slot.

-- What the catalogue says about the session.
local function entry()
  return redis.call('HMGET', session, 'place', 'agent', 'status', 'mem', 'labels')
end

local function sets_of(entry, index, user)
  local _, agent, status, memory, labels = unpack(entry, 1, 5)
  local sets = {
    index .. 'all', index .. 'user:' .. user, index .. 'agent:' .. agent,
    index .. 'status:' .. status, index .. 'memory:' .. memory,
  }
  for _, label in ipairs(unpacked(labels)) do sets[#sets + 1] = index .. 'label:' .. label end
  return sets
end

local function index_add(entry, index, user)
  if index == '' then return end
  for _, set in ipairs(sets_of(entry, index, user)) do redis.call('ZADD', set, 0, entry[1]) end
end

local function index_remove(entry, index, user)
  if index == '' then return end
  for _, set in ipairs(sets_of(entry, index, user)) do redis.call('ZREM', set, entry[1]) end
end
