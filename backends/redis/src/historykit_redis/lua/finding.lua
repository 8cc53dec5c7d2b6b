-- Stream, sequence and text of the message at a place; no text if it is damaged.
local function at(place)
  local sequence, stream = struct.unpack('>I8', place), string.sub(place, 17)
  return stream, sequence, redis.call('ZRANGEBYSCORE', messages_of(stream), sequence, sequence)[1]
end
