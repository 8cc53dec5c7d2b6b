-- Put messages in the place of all those of a stream.
-- ARGV: operation, now, stream, expected version, then id, message and content of each message.

local operation, now, stream, expected = unpack(ARGV, 1, 4)
local FIRST = 5

local incarnation, version, next_sequence = unpack(redis.call('HMGET', session, 'inc', 'ver', 'seq'))
if not incarnation then return {'absent'} end
local first_before = outcome(operation)
if first_before then return {'ok', incarnation, expected + 1, first_before} end
if tonumber(version) ~= tonumber(expected) then return {'version', version} end

local positions = {}
for i = FIRST, #ARGV, 3 do
  local place = redis.call('HGET', ids, ARGV[i])
  if place and string.sub(place, 9) ~= stream then
    return {'elsewhere', ARGV[i], string.sub(place, 9)}
  end
  positions[#positions + 1] = i
end

remove_between(stream, '-inf', '+inf', function() return true end)
put(stream, tonumber(next_sequence), positions)
redis.call('HSET', session, 'seq', next_sequence + #positions)
note_end(stream, #positions)
note_edit(now)
note(operation, tonumber(next_sequence))
return {'ok', incarnation, expected + 1, tonumber(next_sequence)}
