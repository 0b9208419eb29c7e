-- admit: compares the usage of every account with its limits; where all are below, reserves the price on all.
--
-- KEYS     the accounts' values, 1 to 64, in one slot where this runs on a Cluster
-- ARGV[1]  the length of a bucket in microseconds
-- ARGV[2]  the price: cpu, memory, network, 5 bytes each
-- ARGV[3]  per account and resource 7 bytes: the limit (6 bytes; 2^48-1 is unlimited, which no sum reaches) and
--          whether reaching it refuses (1) or is only told (0)
--
-- Returns { seconds, microseconds, tick, allowed (1 or 0), rebased, state, ... }: the clock, the bucket reserved
-- in, how many windows a clock stepped back had put in the future, and per account its state before the price: its
-- sums as in the head of its value (18 bytes); where a limit is reached the whole head, followed by the closed buckets as
-- they lie in the value; or '' where it cannot be read.
--
-- Writes the price on all accounts, or nothing (but what a clock that stepped back makes necessary).
-- Example: EVAL <this> 1 q1:{user:alice} 1000000 <15 bytes> <21 bytes> -> { 1764500000, 123456, 1764500000, 1, 0, <18 bytes> }

if #ARGV ~= 3 or #ARGV[2] ~= 15 or #ARGV[3] ~= 21 * #KEYS then
  return redis.error_reply('ERR admit takes a bucket length, 15 bytes of price and 21 bytes of limits an account')
end
local now, windows, rebased = open_all(HEAD)
local price_cpu, price_mem, price_net = unpack_struct('<I5I5I5', ARGV[2])
local allowed = 1
local reply = { seconds, micros, now, 0, rebased }

for i = 1, #KEYS do
  local w = windows[i]
  local cpu, cpu_refuses, mem, mem_refuses, net, net_refuses = unpack_struct('<I6BI6BI6B', ARGV[3], 21 * i - 20)
  local over_cpu, over_mem, over_net = w and w.cpu >= cpu, w and w.mem >= mem, w and w.net >= net
  local over = over_cpu or over_mem or over_net
  if not w or over and not has_rest(w) then
    windows[i], allowed, reply[5 + i] = false, 0, ''
  else
    if over_cpu and cpu_refuses == 1 or over_mem and mem_refuses == 1 or over_net and net_refuses == 1 then
      allowed = 0
    end
    reply[5 + i] = over and head(w) .. parts(w) or pack('<I6I6I6', w.cpu, w.mem, w.net)
  end
end

local reserve = allowed == 1 and (price_cpu > 0 or price_mem > 0 or price_net > 0)
for i = 1, #KEYS do
  local w = windows[i]
  if w and reserve then add(w, price_cpu, price_mem, price_net) end
  if w and (reserve or w.rebased) then save(w) end
end
reply[4] = allowed
return reply
