-- Append messages to a stream. The rules are those of historykit.planning.plan_append.
-- ARGV: stream, incarnation, expected version, messages to retain, now, a digit for each message (1
-- if its id is external), whether a session may be made, the 9 that `create` takes; then of each
-- message id, text, and content if it is large.

local stream, named, expected, retain, now, externals, may_create = unpack(ARGV, 1, 7)
local NEW_SESSION, FIRST = 8, 17

local head = redis.call('HMGET', session,
  'inc', 'ver', 'seq', 'mem', 'n:' .. stream, 't:' .. stream)
local incarnation, version, next_sequence, memory, count, turn = unpack(head, 1, 6)
if not incarnation and named == '' and may_create == '0' then return {'absent'} end
version, next_sequence = tonumber(version or 0), tonumber(next_sequence or 1)
count, turn = tonumber(count or 0), tonumber(turn or 0)

-- Sequences and digests of those messages that are stored already, by id.
local known, known_digests = {}, {}
for first = FIRST, incarnation and #ARGV or 0, 3000 do
  local part = {}
  for i = first, math.min(first + 2999, #ARGV), 3 do part[#part + 1] = ARGV[i] end
  for n, place in ipairs(redis.call('HMGET', places, unpack(part))) do
    if place then
      local _, sequence, message = at(place)
      if not message then return {'damaged'} end
      known[part[n]], known_digests[part[n]] = sequence, digest_of(message)
    end
  end
end

-- The facts on which the client raises the error that fits.
local function refuse()
  local facts = {}
  for id, sequence in pairs(known) do facts[#facts + 1] = {id, sequence, known_digests[id]} end
  return {'refused', incarnation, version, next_sequence, memory, facts}
end

local function is_external(i) return string.byte(externals, (i - FIRST) / 3 + 1) == 49 end

-- Where the messages to store are in ARGV, or nil for a batch that is not what it was.
local function choose()
  local repeated, minted_known, fresh = false, false, {}
  for i = FIRST, #ARGV, 3 do
    local digest = known_digests[ARGV[i]]
    if digest and digest ~= digest_of(ARGV[i + 1]) then return nil end
    if not is_external(i) then
      repeated = digest
      minted_known = minted_known or digest
    end
  end
  if minted_known and not repeated then return nil end
  for i = FIRST, #ARGV, 3 do
    if not known[ARGV[i]] and not (repeated and not is_external(i)) then fresh[#fresh + 1] = i end
  end
  return fresh
end

if named ~= '' and named ~= incarnation then return refuse() end
local fresh = {}
if (memory or ARGV[NEW_SESSION + 3]) == '1' then fresh = choose() end
if not fresh then return refuse() end
if (#fresh > 0 or not next(known)) and expected ~= '' and tonumber(expected) ~= version then
  return refuse()
end

if not incarnation then create(NEW_SESSION, now) end
if #fresh > 0 then
  if count == 0 then redis.call('UNLINK', KEYS[4], KEYS[5]) end
  version, count = version + 1, count + #fresh
  turn = put(stream, next_sequence, fresh, turn)
  local fields = {'ver', version, 'seq', next_sequence + #fresh, 'touched', now,
    'n:' .. stream, count, 't:' .. stream, turn}
  if stream == 'main' then
    fields[11], fields[12] = 'last', created_of(ARGV[fresh[#fresh] + 1])
  end
  redis.call('HSET', session, unpack(fields))
  if retain ~= '' then trim(stream, count, tonumber(retain)) end
end

local sequences, n = {}, 0
for i = FIRST, #ARGV, 3 do
  local sequence = known[ARGV[i]] or false
  if fresh[n + 1] == i then
    sequence = next_sequence + n
    n = n + 1
  end
  sequences[#sequences + 1] = sequence
end
return {'ok', incarnation or ARGV[NEW_SESSION], version, #fresh, incarnation and 0 or 1, sequences}
