-- Delete the messages of a stream that meet every condition given.
-- ARGV: operation, now, stream, first and last sequence, the time before which they were made,
-- whether ids are given, the ids.

local operation, now, stream, first, last, before, by_id = unpack(ARGV, 1, 7)
local IDS = 8

local deleted_before = outcome(operation)
if deleted_before then return {'ok', deleted_before} end

local function is_doomed(message)
  if before == '' then return true end
  local high, low = struct.unpack('>I4I4', created_of(message))
  local limit_high, limit_low = struct.unpack('>I4I4', before)
  return high < limit_high or (high == limit_high and low < limit_low)
end

local function remove_one(id)
  local place = redis.call('HGET', places, id)
  if not place then return 0 end
  local home, sequence, message = at(place)
  local is_there = message and home == stream
  if not is_there or sequence < tonumber(first) or sequence > tonumber(last) then return 0 end
  return remove(stream, {message, sequence}, is_doomed)
end

local count = 0
if by_id == '0' then
  count = remove_between(stream, first, last, is_doomed)
else
  for i = IDS, #ARGV do count = count + remove_one(ARGV[i]) end
end
if count > 0 then
  note_end(stream, redis.call('HGET', session, 'n:' .. stream) - count)
  note_edit(now)
  note(operation, count)
end
return {'ok', count}
