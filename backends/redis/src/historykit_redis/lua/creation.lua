-- Make a session. `packed` holds where the index is, the user, and names and values of the fields.
local function create(packed)
  local values = unpacked(packed)
  redis.call('HSET', session, unpack(values, 3))
  redis.call('UNLINK', places, contents)  -- of a session whose hash was evicted or deleted by hand
  index_add(entry(), values[1], values[2])
end
