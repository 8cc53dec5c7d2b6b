-- Store messages with sequences from `first` on. ARGV at each of `positions`: id, message, content.
local function put(stream, first, positions)
  local places, order, turns = {}, {}, {}
  for n, i in ipairs(positions) do
    local sequence = first + n - 1
    local number, message = packed(sequence), ARGV[i + 1]
    local flags = string.byte(message, 33)
    if has(flags, IS_LARGE) then
      redis.call('HSET', contents, sequence, ARGV[i + 2])
      redis.call('ZADD', large_of(stream), sequence, number .. struct.pack('>I4', #ARGV[i + 2]))
      message = number .. message
    else
      message = number .. message .. ARGV[i + 2]
    end
    places[2 * n - 1], places[2 * n] = ARGV[i], number .. stream
    order[2 * n - 1], order[2 * n] = sequence, message
    if has(flags, TURN_START) then
      turns[#turns + 1] = sequence
      turns[#turns + 1] = sequence
    end
  end
  in_parts('HSET', ids, places)
  in_parts('ZADD', order_of(stream), order)
  in_parts('ZADD', turns_of(stream), turns)
end
