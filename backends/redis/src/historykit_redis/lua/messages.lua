-- A message is a member of its stream's sorted set, scored by its sequence. Numbers are big-endian:
--   digest 16, created_at 8, length of the body 4, revision 4, flags 1, lengths of the role 2, of
--   the reaction 2 and of the id 2, role, reaction, id; then body and extra, unless they are large:
--   then they are a field of `contents`, by sequence, and the stream's set of what is large holds
--   sequence 8 and length of the body 4, by sequence too.
-- `places` has sequence 8, sequence of the turn's start 8 (0: none) and stream of each, by id.

local TURN_START, HAS_EXTRA, HAS_REACTION, IS_LARGE = 1, 2, 4, 8
local LARGE = 4096
local INSTRUCTION_ROLES = {system = true, developer = true}

local function has(flags, flag) return math.floor(flags / flag) % 2 == 1 end

local function digest_of(message) return string.sub(message, 1, 16) end

local function created_of(message) return string.sub(message, 17, 24) end

local function flags_of(message) return string.byte(message, 33) end

local function large_entry(sequence, message)
  return struct.pack('>I8', sequence) .. string.sub(message, 25, 28)
end

local function role_of(message)
  local length = struct.unpack('>I2', message, 34)
  return string.sub(message, 40, 39 + length)
end

local function id_of(message)
  local role, reaction, id = struct.unpack('>I2I2I2', message, 34)
  return string.sub(message, 40 + role + reaction, 39 + role + reaction + id)
end

-- Lua passes some thousand arguments at most.
local function in_parts(command, key, values)
  for first = 1, #values, 1000 do
    redis.call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end
