-- Change one message in its place.
-- ARGV: operation, now, id, required role, body, extra, reaction, digest of the body. A value begins
-- with `=`; nothing says that it stays, `none` that it goes.

local operation, now, id, required_role, new_body, new_extra, new_reaction, new_digest = unpack(ARGV)

if redis.call('EXISTS', session) == 0 then return {'absent'} end
local place = redis.call('HGET', places, id)
if not place then return {'no message'} end
local stream, sequence, message = at(place)
if not message then return {'damaged'} end
local role = role_of(message)
if required_role ~= '' and required_role ~= '=' .. role then return {'role', role} end

local flags = flags_of(message)
local was_large = has(flags, IS_LARGE)
local size, revision, _, role_length, reaction_length, id_length =
  struct.unpack('>I4I4BI2I2I2', message, 25)
local reaction_at = 40 + role_length
local content = was_large and (redis.call('HGET', contents, sequence) or '')
  or string.sub(message, reaction_at + reaction_length + id_length)

-- What a value is after the change, nil for none.
local function changed(argument, present, value)
  if argument == '' then return present and value or nil end
  if argument == 'none' then return nil end
  return string.sub(argument, 2)
end

local function rewritten()
  local body = changed(new_body, true, string.sub(content, 1, size))
  local extra = changed(new_extra, has(flags, HAS_EXTRA), string.sub(content, size + 1))
  local reaction = changed(new_reaction, has(flags, HAS_REACTION),
    string.sub(message, reaction_at, reaction_at + reaction_length - 1))
  local new_content = body .. (extra or '')
  local is_large = #new_content > LARGE
  local new_flags = (has(flags, TURN_START) and TURN_START or 0) + (extra and HAS_EXTRA or 0)
    + (reaction and HAS_REACTION or 0) + (is_large and IS_LARGE or 0)
  reaction = reaction or ''
  local lengths = struct.pack('>I4I4BI2I2I2',
    #body, revision + 1, new_flags, role_length, #reaction, id_length)
  return (new_digest ~= '' and new_digest or digest_of(message)) .. created_of(message) .. lengths
    .. role .. reaction .. id .. (is_large and '' or new_content), new_content, is_large
end

if not outcome(operation) then
  local is_large
  message, content, is_large = rewritten()
  redis.call('ZREMRANGEBYSCORE', messages_of(stream), sequence, sequence)
  redis.call('ZREMRANGEBYSCORE', large_of(stream), sequence, sequence)
  redis.call('HDEL', contents, sequence)
  redis.call('ZADD', messages_of(stream), sequence, message)
  if is_large then
    redis.call('HSET', contents, sequence, content)
    redis.call('ZADD', large_of(stream), sequence, large_entry(sequence, message))
  end
  note_edit(now)
  note(operation, 0)
end
return {'ok', message, sequence, content}
