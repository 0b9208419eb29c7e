-- register: notes in an index that a name is there, if there is room for it, and forgets those that were not noted for too
-- long. A key that holds something else is removed.
--
-- KEYS[1]  the names, a sorted set by when each was last registered, in seconds
-- ARGV[1]  the name
-- ARGV[2]  for how long a name is kept, in seconds
-- ARGV[3]  the most names
--
-- Returns 1, or 0 where there is no room.

local lifetime, most = tonumber(ARGV[2]), tonumber(ARGV[3])
if #KEYS ~= 1 or #ARGV ~= 3 or not lifetime or lifetime < 1 or not most then
  return redis.error_reply('ERR register takes a key, a name, a number of seconds and the most names')
end
local now = tonumber(redis.call('TIME')[1])
local known = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if type(known) == 'table' and known.err then
  if not string.find(known.err, 'WRONGTYPE', 1, true) then return known end
  redis.call('DEL', KEYS[1])
  known = false
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - lifetime)
if not known and redis.call('ZCARD', KEYS[1]) >= most then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('EXPIRE', KEYS[1], lifetime)
return 1
