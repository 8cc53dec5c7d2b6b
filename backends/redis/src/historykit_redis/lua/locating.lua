-- Stream and text of the message at a place that `ids` has; no text if it is damaged.
local function at(place)
  local stream = string.sub(place, 9)
  local sequence = sequence_of(place)
  return stream, redis.call('ZRANGEBYSCORE', order_of(stream), sequence, sequence)[1]
end
