-- Make a session, or deal with the one that is there.
-- ARGV: operation, now, if_exists, incarnation, index, user, what `create` takes, then names and
-- values of the fields that an existing one is given.

local operation, now, if_exists, wanted, index, user, new_session = unpack(ARGV, 1, 7)
local CHANGES = 8

local incarnation = redis.call('HGET', session, 'inc')
if not incarnation then create(new_session) end
if not incarnation or incarnation == wanted or if_exists == 'return' then
  return {'ok', redis.call('HGETALL', session)}
end
if if_exists == 'error' then return {'exists'} end
return change(operation, now, index, user, CHANGES)
