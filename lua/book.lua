-- What the scripts say, words and restore share: operators' words in a hash. The same is quota-core's `Book`, where it is
-- explained; a model test keeps the two equal. Time is TIME's alone, in microseconds.
--
-- KEYS[1]  the hash: `version`, a decimal number, another one at each change; and for each name, which holds a `:`, its last
--          word, little-endian (layout q1): when it was said (7 bytes), until when it holds (7 bytes; 0: for ever), and its
--          text, empty where it is withdrawn. It does not expire. A key that holds something else is removed, as lost.

local HEAD, MEMORY = 14, 86400e6

local time = redis.call('TIME')
local seconds, micros = tonumber(time[1]), tonumber(time[2])
local now = seconds * 1e6 + micros

-- Which state it is: 0 where there is none.
local function read_version()
  local version = redis.pcall('HGET', KEYS[1], 'version')
  if type(version) == 'table' then
    if not string.find(version.err, 'WRONGTYPE', 1, true) then return nil, version end
    redis.call('DEL', KEYS[1])
    version = false
  end
  return tonumber(version or 0) or 0
end

local function next_version(version)
  return math.max(now, version + 1)
end

local function write_version(version)
  redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version))
end

-- How many names there are.
local function names()
  return redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], 'version')
end

-- When a word was said, and whether it holds; one that cannot be read was never said.
local function read_word(word)
  if not word or #word < HEAD then return 0, false end
  local said, until_ = struct.unpack('<I7I7', word)
  return said, #word > HEAD and (until_ == 0 or now < until_)
end

-- Makes room by what nobody needs to know any more.
local function forget()
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local said, holds = read_word(fields[i + 1])
    if fields[i] ~= 'version' and not holds and now - said > MEMORY then redis.call('HDEL', KEYS[1], fields[i]) end
  end
end

