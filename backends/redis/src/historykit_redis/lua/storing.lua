-- Store messages with sequences from `first` on, each with its id before it in ARGV and its content
-- behind it, if that is large. `turn` is where the turn under way starts; returns it as it is then.
local function put(stream, first, positions, turn)
  local new_places, messages = {}, {}
  for n, i in ipairs(positions) do
    local sequence, message, content = first + n - 1, ARGV[i + 1], ARGV[i + 2]
    if has(flags_of(message), TURN_START) then turn = sequence end
    if content ~= '' then
      redis.call('HSET', contents, sequence, content)
      redis.call('ZADD', large_of(stream), sequence, large_entry(sequence, message))
    end
    new_places[2 * n - 1] = ARGV[i]
    new_places[2 * n] = struct.pack('>I8I8', sequence, turn) .. stream
    messages[2 * n - 1], messages[2 * n] = sequence, message
  end
  in_parts('HSET', places, new_places)
  in_parts('ZADD', messages_of(stream), messages)
  return turn
end
