-- The catalogue of a namespace: sorted sets without scores, whose members are the places of
-- sessions in the order of a search. Each holds the sessions that one condition finds. `index` is
-- what the keys of the namespace begin with, and empty where they are in another slot.

local function index_keys(index, agent, status, memory, labels)
  local keys = {
    index .. 'agent:' .. agent, index .. 'status:' .. status, index .. 'memory:' .. memory,
  }
  for _, label in ipairs(unpacked(labels)) do keys[#keys + 1] = index .. 'label:' .. label end
  return keys
end

local function index_add(keys, place)
  for _, key in ipairs(keys) do redis.call('ZADD', key, 0, place) end
end

local function index_remove(keys, place)
  for _, key in ipairs(keys) do redis.call('ZREM', key, place) end
end
