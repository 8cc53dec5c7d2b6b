-- Change fields of a session.
-- ARGV: operation, now, expected revision, index, user, names and values of the fields.

local operation, now, expected, index, user = unpack(ARGV, 1, 5)
local CHANGES = 6

local revision = redis.call('HGET', session, 'rev')
if not revision then return {'absent'} end
if expected ~= '' and tonumber(expected) ~= tonumber(revision) and not outcome(operation) then
  return {'revision', revision}
end
return change(operation, now, index, user, CHANGES)
