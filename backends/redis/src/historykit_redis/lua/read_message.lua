-- One message by its id.
-- ARGV: id.

if redis.call('EXISTS', session) == 0 then return {'no message'} end

-- Whether messages are counted of which no place is known.
local function is_damaged()
  if redis.call('EXISTS', places) == 1 then return false end
  local fields = redis.call('HGETALL', session)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 2) == 'n:' and tonumber(fields[i + 1]) > 0 then return true end
  end
  return false
end

local place = redis.call('HGET', places, ARGV[1])
if not place then return {is_damaged() and 'damaged' or 'no message'} end
local _, sequence, message = at(place)
if not message then return {'damaged'} end
return {'ok', message, sequence, has(flags_of(message), IS_LARGE)
  and redis.call('HGET', contents, sequence)}
