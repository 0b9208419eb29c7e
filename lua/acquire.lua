-- acquire: leases slots, as many as there are of those that are wanted. slots.lua stands before it.
--
-- ARGV[10]  how many are needed
-- ARGV[11]  how many further ones would be welcome: of a quarter of what is left then
-- ARGV[12]  for how long the lease can be renewed in microseconds; 0: as long as the holder likes
-- refused   `opening` comes with for how long nothing is leased, in the place of how long a lease lasts

local wanted, spare, stops = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
if not (is_count(wanted) and is_count(spare)) or not stops or stops < 0 or stops > 2 ^ 50 then
  return redis.error_reply('ERR acquire takes how many slots, how many more, and for how long')
end
advance()
local left = math.max(s.cap - s.leased, 0)
local here = 2 ^ 32
if node_cap and node ~= '' then
  here = math.max(node_cap - (tonumber(call('HGET', KEYS[1], 'n' .. node)) or 0), 0)
end
if now < s.opens then return answer(0, s.opens - now, 'opening') end
if call('ZCARD', KEYS[2]) >= MOST_LEASES then return answer(0, 0, 'leases') end
if left == 0 then return answer(0, 0, 'cap') end
if here == 0 then return answer(0, 0, 'node') end
left = math.min(left, here)
local needed = math.min(wanted, left)
local granted = needed + math.min(spare, math.floor((left - needed) / SPARE_PART))
if granted == 0 then return answer(0, 0, '') end
local lease = { count = granted, stops = stops > 0 and now + stops or 0, holder = holder, node = node }
local lasting = write(id, lease)
return answer(granted, lasting, '')
