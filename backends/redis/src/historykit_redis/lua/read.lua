-- What one page of a stream needs beside its messages. These come without a script, because it
-- takes five times as long to pass them through Lua; those that are large lack their contents.
-- ARGV: stream, most messages, before, after, most bytes, whether the first message is wanted.

local stream, most, before, after, room, opening_wanted = unpack(ARGV)
local head = redis.call('HMGET', session, 'inc', 'ver', 'edits', 'n:' .. stream)
if not head[1] then return {'absent', false, false} end
if redis.call('ZCARD', KEYS[4]) ~= tonumber(head[4] or 0) then return {'damaged'} end

-- The large messages in the direction of the window, nearest first.
local function window()
  if after ~= '' then
    return redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. after, '+inf', 'LIMIT', 0, most)
  end
  local from = before == '' and '+inf' or '(' .. before
  return redis.call('ZREVRANGEBYSCORE', KEYS[5], from, '-inf', 'LIMIT', 0, most)
end

local sequences = {}
room = tonumber(room)
for i, large in ipairs(window()) do
  local sequence, length = struct.unpack('>I8I4', large)
  if i > 1 and room < length then break end
  sequences[i] = sequence
  room = room - length
end
local found = #sequences > 0 and redis.call('HMGET', contents, unpack(sequences)) or {}

local opening = {}
if opening_wanted == '1' then
  opening = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
  if opening[1] and not INSTRUCTION_ROLES[role_of(opening[1])] then opening = {} end
  if opening[1] and has(flags_of(opening[1]), IS_LARGE) then
    opening[3] = redis.call('HGET', contents, opening[2])
  end
end
return {'ok', head[1], head[2], head[3], sequences, found, opening}
