-- Make a session, or deal with the one that is there.
-- ARGV: operation, now, if_exists, the 9 that `create` takes, then names and values of the fields
-- that an existing one is given.

local operation, now, if_exists, wanted = unpack(ARGV, 1, 4)
local NEW_SESSION, INDEX, USER, CHANGES = 4, 11, 12, 13

local incarnation = redis.call('HGET', session, 'inc')
if not incarnation then create(NEW_SESSION, now) end
if not incarnation or incarnation == wanted or if_exists == 'return' then
  return {'ok', redis.call('HGETALL', session)}
end
if if_exists == 'error' then return {'exists'} end
return change(operation, now, ARGV[INDEX], ARGV[USER], CHANGES)
