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
expire()
step()
if now < s.opens then return answer(0, s.opens - now, 'opening') end
local left, refused = room()
if refused then return answer(0, 0, refused) end
local needed = math.min(wanted, left)
local granted = needed + math.min(spare, math.floor((left - needed) / SPARE_PART))
if granted == 0 then return answer(0, 0, '') end
local lease = { count = granted, stops = stops > 0 and now + stops or 0, holder = holder, node = node }
local lasting = write(id, lease)
return answer(granted, lasting, '')
