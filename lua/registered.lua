-- registered: the names of an index. Changes nothing, unless the key holds something else, which is removed.
--
-- KEYS[1]  the names, a sorted set by when each was last registered, in seconds
-- ARGV[1]  the most that are told
--
-- Returns { seconds, microseconds, name, second, ... }: the clock, and the names with that second, the last first.

if #KEYS ~= 1 or #ARGV ~= 1 then
  return redis.error_reply('ERR registered takes a key and a number')
end
local time = redis.call('TIME')
local reply = redis.pcall('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
if reply.err then
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return reply end
  redis.call('DEL', KEYS[1])
  reply = {}
end
table.insert(reply, 1, tonumber(time[2]))
table.insert(reply, 1, tonumber(time[1]))
return reply
