-- The values in a text in which each has its length before it.
local function unpacked(packed)
  local values, at = {}, 1
  while at <= #packed do
    values[#values + 1], at = struct.unpack('>I4c0', packed, at)
  end
  return values
end
