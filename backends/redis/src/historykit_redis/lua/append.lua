-- Append messages to a stream. The rules are those of historykit.planning: `plan_append`,
-- `retention_cut`.
-- ARGV: stream, incarnation, expected version, messages to retain, now, a digit for each message (1
-- if its id is external), whether a session may be made, its memory flag, its incarnation, what
-- `create` takes, then id, message and content of each message.

local stream, named, expected, retain, now, externals, may_create = unpack(ARGV, 1, 7)
local new_memory, new_incarnation, new_session = unpack(ARGV, 8, 10)
local FIRST = 11

local head = redis.call('HMGET', session, 'inc', 'ver', 'seq', 'mem', 'n:' .. stream)
local incarnation, version, next_sequence, memory, count = unpack(head, 1, 5)
if not incarnation and named == '' and may_create == '0' then return {'absent'} end
version, next_sequence = tonumber(version or 0), tonumber(next_sequence or 1)
count = tonumber(count or 0)

-- The messages among those given that are stored already, by id.
local function look_up()
  local known = {}
  for first = FIRST, #ARGV, 3000 do
    local part = {}
    for i = first, math.min(first + 2999, #ARGV), 3 do part[#part + 1] = ARGV[i] end
    for n, place in ipairs(redis.call('HMGET', ids, unpack(part))) do
      if place then
        local _, message = at(place)
        known[part[n]] = message or false
      end
    end
  end
  return known
end

local known = incarnation and look_up() or {}
for _, message in pairs(known) do
  if not message then return {'damaged'} end
end

-- The facts on which the client raises the error that fits.
local function refuse()
  local facts = {}
  for id, message in pairs(known) do
    facts[#facts + 1] = id
    facts[#facts + 1] = string.sub(message, 1, 24)
  end
  return {'refused', incarnation, version, next_sequence, memory, facts}
end

local function is_external(i) return string.byte(externals, (i - FIRST) / 3 + 1) == 49 end

-- Where the messages to store are in ARGV, or nil for a batch that is not what it was.
local function choose()
  local repeated, minted_known, fresh = false, false, {}
  for i = FIRST, #ARGV, 3 do
    local message = known[ARGV[i]]
    if message and digest_of(message) ~= string.sub(ARGV[i + 1], 1, 16) then return nil end
    if not is_external(i) then
      repeated = message
      minted_known = minted_known or message
    end
  end
  if minted_known and not repeated then return nil end
  for i = FIRST, #ARGV, 3 do
    if not known[ARGV[i]] and not (repeated and not is_external(i)) then fresh[#fresh + 1] = i end
  end
  return fresh
end

local function trim(most)
  if count <= most then return end
  local order = order_of(stream)
  local oldest_wanted = sequence_of(redis.call('ZREVRANGE', order, most - 1, most - 1)[1])
  local start = redis.call('ZREVRANGEBYSCORE', turns_of(stream), oldest_wanted, '-inf',
    'LIMIT', 0, 1)[1]
  if not start then return end
  local opening = redis.call('ZRANGE', order, 0, 0)[1]
  local first = sequence_of(opening) + (INSTRUCTION_ROLES[role_of(opening)] and 1 or 0)
  local removed = remove_between(stream, first, '(' .. start, function() return true end)
  if removed > 0 then
    redis.call('HINCRBY', session, 'x:' .. stream, removed)
    note_end(stream, count - removed)
  end
end

if named ~= '' and named ~= incarnation then return refuse() end
local fresh = {}
if (memory or new_memory) == '1' then fresh = choose() end
if not fresh then return refuse() end
if (#fresh > 0 or not next(known)) and expected ~= '' and tonumber(expected) ~= version then
  return refuse()
end

if not incarnation then create(new_session) end
if #fresh > 0 then
  local last
  if stream == 'main' then last = string.sub(ARGV[fresh[#fresh] + 1], 17, 24) end
  if count == 0 then redis.call('UNLINK', KEYS[4], KEYS[5], KEYS[6]) end
  version, count = version + 1, count + #fresh
  redis.call('HSET', session, 'ver', version, 'seq', next_sequence + #fresh, 'touched', now,
    'n:' .. stream, count, unpack(last and {'last', last} or {}))
  put(stream, next_sequence, fresh)
  if retain ~= '' then trim(tonumber(retain)) end
end

local sequences, n = {}, 0
for i = FIRST, #ARGV, 3 do
  local message = known[ARGV[i]]
  if fresh[n + 1] == i then
    sequences[#sequences + 1] = next_sequence + n
    n = n + 1
  else
    sequences[#sequences + 1] = message and sequence_of(message) or false
  end
end
return {'ok', incarnation or new_incarnation, version, #fresh, incarnation and 0 or 1, sequences}
