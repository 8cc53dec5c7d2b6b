-- The places that are in every one of the sets, from `high` down to `low`, both limits as
-- ZREVRANGEBYLEX takes them. A call looks at so many places at most and says where to go on.
-- KEYS: the sets. ARGV: high, low, how many to pass over, how many to return, whether to count all,
-- how many places to look at.

local high, low, skip, want, counting, budget = unpack(ARGV)
skip, want, budget = tonumber(skip), tonumber(want), tonumber(budget)

if #KEYS == 1 then
  local count = counting == '1' and redis.call('ZLEXCOUNT', KEYS[1], low, high) or 0
  return {false, count, redis.call('ZREVRANGEBYLEX', KEYS[1], high, low, 'LIMIT', skip, want)}
end

local smallest, fewest
for i, key in ipairs(KEYS) do
  local size = redis.call('ZLEXCOUNT', key, low, high)
  if not fewest or size < fewest then smallest, fewest = i, size end
end

local function in_all(places)
  local found = {}
  for i, place in ipairs(places) do found[i] = place end
  for i, key in ipairs(KEYS) do
    if i ~= smallest and #places > 0 then
      for n, score in ipairs(redis.call('ZMSCORE', key, unpack(places))) do
        found[n] = score and found[n]
      end
    end
  end
  return found
end

local count, page = 0, {}
while true do
  local places = redis.call('ZREVRANGEBYLEX', KEYS[smallest], high, low, 'LIMIT', 0, 500)
  for _, place in ipairs(in_all(places)) do
    if place then
      count = count + 1
      if count > skip and #page < want then page[#page + 1] = place end
    end
  end
  budget = budget - #places
  if #places < 500 or (counting ~= '1' and #page == want) then return {false, count, page} end
  high = '(' .. places[#places]
  if budget <= 0 then return {places[#places], count, page} end
end
