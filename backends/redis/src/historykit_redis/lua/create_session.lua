-- Make a session, or deal with the one that is there.
-- ARGV: operation, now, if_exists, incarnation, index, all fields of a new session, then names and
-- values of those that an existing one is given.

local operation, now, if_exists, wanted, index, fields = unpack(ARGV, 1, 6)
local CHANGES = 7

local incarnation = redis.call('HGET', session, 'inc')
if not incarnation then create(fields, now) end
if not incarnation or incarnation == wanted or if_exists == 'return' then return {'ok', record()} end
if if_exists == 'error' then return {'exists'} end
return change(operation, now, index, CHANGES)
