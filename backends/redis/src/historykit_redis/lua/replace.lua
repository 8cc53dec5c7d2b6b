-- Put messages in the place of all those of a stream.
-- ARGV: operation, now, stream, expected version; then of each message id, text, and content if it
-- is large.

local operation, now, stream, expected = unpack(ARGV, 1, 4)
local FIRST = 5

local incarnation, version, next_sequence = unpack(redis.call('HMGET', session, 'inc', 'ver', 'seq'))
if not incarnation then return {'absent'} end
local first_before = outcome(operation)
if first_before then return {'ok', incarnation, expected + 1, first_before} end
if tonumber(version) ~= tonumber(expected) then return {'version', version} end

local positions = {}
for i = FIRST, #ARGV, 3 do
  local place = redis.call('HGET', places, ARGV[i])
  if place and string.sub(place, 17) ~= stream then
    return {'elsewhere', ARGV[i], string.sub(place, 17)}
  end
  positions[#positions + 1] = i
end

next_sequence = tonumber(next_sequence)
remove_between(stream, '-inf', '+inf', any)
local turn = put(stream, next_sequence, positions, 0)
redis.call('HSET', session, 'seq', next_sequence + #positions, 't:' .. stream, turn)
note_end(stream, #positions)
note_edit(now)
note(operation, next_sequence)
return {'ok', incarnation, expected + 1, next_sequence}
