-- Claim a session for a run, hold it for longer, or let it go. The rules are those of
-- historykit.planning: `plan_claim`, `plan_renewal`, `plan_release`.
-- ARGV: operation, claim or renew or release, run, until when, now.

local operation, action, run, until_when, now = unpack(ARGV)

local head = redis.call('HMGET', session, 'inc', 'run', 'until')
local incarnation, holder, held_until = unpack(head, 1, 3)
if not incarnation then return {'absent'} end
if action == 'release' then
  if outcome(operation) then return {'ok'} end
  if holder ~= run then return {'held', holder, held_until} end
  redis.call('HDEL', session, 'run', 'until')
  note(operation, 0)
  return {'ok'}
end
local is_free = action == 'claim' and (not holder or tonumber(held_until) <= tonumber(now))
if holder ~= run and not is_free then return {'held', holder, held_until} end
redis.call('HSET', session, 'run', run, 'until', until_when)
return {'ok', run, until_when}
