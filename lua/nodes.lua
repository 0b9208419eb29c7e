-- nodes: which nodes are remembered. Changes nothing, unless the key holds something else, which is removed.
--
-- KEYS[1]  their names, a sorted set by when each last reported, in seconds
-- ARGV[1]  the most that are told
--
-- Returns { seconds, microseconds, name, ... }: the clock, and the nodes, those that reported last first.

if #KEYS ~= 1 or #ARGV ~= 1 then
  return redis.error_reply('ERR nodes takes a key and a number')
end
local time = redis.call('TIME')
local reply = redis.pcall('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1)
if reply.err then
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return reply end
  redis.call('DEL', KEYS[1])
  reply = {}
end
table.insert(reply, 1, tonumber(time[2]))
table.insert(reply, 1, tonumber(time[1]))
return reply
