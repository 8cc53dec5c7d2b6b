-- What the scripts on one session share. KEYS: the session's hash, the places of its messages, its
-- large contents, and of one stream the messages and the large ones among them. Other streams are
-- named alike, so that all keys of a session are in one slot.

local session, places, contents = KEYS[1], KEYS[2], KEYS[3]
local base = string.sub(session, 1, -2)

local function messages_of(stream) return base .. 'm:' .. stream end

local function large_of(stream) return base .. 'w:' .. stream end

-- The number noted for an operation that was carried out already: drivers send what they got no
-- answer to a second time.
local function outcome(operation)
  local log = redis.call('HGET', session, 'done')
  return log and tonumber(string.match(log, operation .. '=(%d+);'))
end

local function note(operation, number)
  local log = redis.call('HGET', session, 'done') or ''
  redis.call('HSET', session, 'done', string.sub(log .. operation .. '=' .. number .. ';', -400))
end
