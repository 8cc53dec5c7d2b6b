local function note_edit(now)
  redis.call('HINCRBY', session, 'ver', 1)
  redis.call('HINCRBY', session, 'edits', 1)
  redis.call('HSET', session, 'touched', now)
end
