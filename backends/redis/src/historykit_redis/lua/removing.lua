local function remove_range(stream, first, last)
  redis.call('ZREMRANGEBYSCORE', order_of(stream), first, last)
  redis.call('ZREMRANGEBYSCORE', turns_of(stream), first, last)
  redis.call('ZREMRANGEBYSCORE', large_of(stream), first, last)
end

-- Remove messages that follow each other in their stream, if `is_doomed` says so, and return how
-- many there were.
local function remove(stream, messages, is_doomed)
  local gone, large = {}, {}
  local first, last
  for _, message in ipairs(messages) do
    local sequence = sequence_of(message)
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
  in_parts('HDEL', ids, gone)
  in_parts('HDEL', contents, large)
  return #gone
end

-- The same for all messages from one sequence to another, a part at a time.
local function remove_between(stream, first, last, is_doomed)
  local count = 0
  while true do
    local part = redis.call('ZRANGEBYSCORE', order_of(stream), first, last, 'LIMIT', 0, 500)
    count = count + remove(stream, part, is_doomed)
    if #part < 500 then return count end
    first = '(' .. sequence_of(part[500])
  end
end

-- Note in the session's hash how many messages a stream holds now, and when the last one was made.
local function note_end(stream, count)
  redis.call('HSET', session, 'n:' .. stream, count)
  if stream == 'main' then
    local newest = redis.call('ZREVRANGE', order_of(stream), 0, 0)[1]
    redis.call('HSET', session, 'last', newest and created_of(newest) or '')
  end
end
