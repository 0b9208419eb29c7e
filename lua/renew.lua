-- renew: a lease goes on, with as many slots as are still needed of it, or ends. slots.lua stands before it.
--
-- ARGV[10]  how many slots of it are needed; more than it has is no more than that, and 0 gives it back
-- ARGV[11]  how many requests have ended since that was told last; of a lease that is not known nothing is learnt
-- ARGV[12]  how long these took in all, in microseconds
--
-- One that is not known is no more, unless it may be one that the server has lost: then it is taken up again.

local needed, finished, micros = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
if not (is_count(needed) and is_count(finished)) or not micros or micros < 0 then
  return redis.error_reply('ERR renew takes how many slots, and how many requests have ended in what time')
end
expire()
local stored = read_lease(id)
local lease = stored and stored.holder == holder and stored.node == node and stored
if lease then learn(lease, finished, micros) end
step()
if lease then
  remove(id, lease)
  lease.count = math.min(needed, lease.count)
elseif not stored and now < s.opens then
  lease = { count = math.min(needed, (room())), stops = 0, holder = holder, node = node }
end
if not lease or lease.count == 0 then return answer(0, 0, '') end
local lasting = write(id, lease)
return answer(lease.count, lasting, '')
