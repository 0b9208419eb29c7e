-- standing: what the accounts have used. Changes no usage.
--
-- KEYS     the accounts' values, 1 to 64, in one slot where this runs on a Cluster
-- ARGV[1]  the length of a bucket in microseconds
--
-- Returns { seconds, microseconds, rebased, state, ... }: the clock, how many windows a clock stepped back had put
-- in the future, and per account the head of its value and its closed buckets as they lie in it, or '' where it cannot be read.

if #ARGV ~= 1 then
  return redis.error_reply('ERR standing takes a bucket length')
end
local _, windows, rebased = open_all(WHOLE)
local reply = { seconds, micros, rebased }
for i = 1, #KEYS do
  local w = windows[i]
  reply[3 + i] = w and head(w) .. parts(w) or ''
  if w and w.rebased then save(w) end
end
return reply
