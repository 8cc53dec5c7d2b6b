local function remove_range(stream, first, last)
  redis.call('ZREMRANGEBYSCORE', messages_of(stream), first, last)
  redis.call('ZREMRANGEBYSCORE', large_of(stream), first, last)
end

-- Remove those of some messages that are doomed and return how many there were. `part` has each
-- with its sequence behind it, as they follow each other in their stream.
local function remove(stream, part, is_doomed)
  local gone, large = {}, {}
  local first, last
  for i = 1, #part, 2 do
    local message, sequence = part[i], part[i + 1]
    if is_doomed(message) then
      gone[#gone + 1] = id_of(message)
      if has(flags_of(message), IS_LARGE) then large[#large + 1] = sequence end
      first, last = first or sequence, sequence
    elseif first then
      remove_range(stream, first, last)
      first = nil
    end
  end
  if first then remove_range(stream, first, last) end
  in_parts('HDEL', places, gone)
  in_parts('HDEL', contents, large)
  return #gone
end

-- The same for all messages from one sequence to another.
local function remove_between(stream, first, last, is_doomed)
  local key, count = messages_of(stream), 0
  while true do
    local part = redis.call('ZRANGEBYSCORE', key, first, last, 'WITHSCORES', 'LIMIT', 0, 500)
    count = count + remove(stream, part, is_doomed)
    if #part < 1000 then return count end
    first = '(' .. part[1000]
  end
end

local function any() return true end

-- Note in the session's hash how many messages a stream holds now, and when the last one was made.
local function note_end(stream, count)
  redis.call('HSET', session, 'n:' .. stream, count)
  if stream == 'main' then
    local newest = redis.call('ZREVRANGE', messages_of(stream), 0, 0)[1]
    redis.call('HSET', session, 'last', newest and created_of(newest) or '')
  end
end
