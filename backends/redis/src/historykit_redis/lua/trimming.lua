-- Where the turn starts to which a message belongs; if that is gone, the turn of what is before it.
local function turn_start(stream, message)
  while message do
    local place = redis.call('HGET', places, id_of(message))
    local start = place and struct.unpack('>I8', place, 9) or 0
    if start == 0 then return nil end
    local key = messages_of(stream)
    if redis.call('ZCOUNT', key, start, start) == 1 then return start end
    message = redis.call('ZREVRANGEBYSCORE', key, '(' .. start, '-inf', 'LIMIT', 0, 1)[1]
  end
end

-- Remove what retention does not want of a stream. The rule is historykit.planning.retention_cut.
local function trim(stream, count, most)
  if count <= most then return end
  local key = messages_of(stream)
  local start = turn_start(stream, redis.call('ZREVRANGE', key, most - 1, most - 1)[1])
  if not start then return end
  local opening = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  local first = opening[2] + (INSTRUCTION_ROLES[role_of(opening[1])] and 1 or 0)
  local removed = remove_between(stream, first, '(' .. start, any)
  if removed > 0 then
    redis.call('HINCRBY', session, 'x:' .. stream, removed)
    note_end(stream, count - removed)
  end
end
