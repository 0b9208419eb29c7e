-- The slots of a class of traffic, each a request in progress, leased in blocks. The scripts of slots start with this text.
--
-- The same is quota-core's `Slots`, where it is explained; a model test keeps the two equal. Time is TIME's alone, made
-- steady: where it steps back, it stands still for that moment.
--
-- KEYS[1]  a hash
--            s      the state, little-endian: last moment (7 bytes) and how far the clock stepped back (7), in microseconds;
--                   when slots are leased again whose former holders are not known (7); leased (4); the cap (4), when its
--                   interval ends (7), requests that ended in it (7), what they took by what is usual (7) and the weights of who
--                   told (7), what one usually takes (6); the run of the server (8)
--            l<id>  a lease: its slots (4 bytes), when it stops for good or 0 (7), when it was leased or renewed last (7), the length
--                   of the holder's name (1), holder, node
--            n<node>, m<node>  how many slots are leased for it, and in how many leases
-- KEYS[2]  the leases' ids, a sorted set by when they end
-- ARGV     1: how long a lease lasts in microseconds  2: 1 if nodes are under pressure, else 0  3: the cap of a node, or ''
--          4, 5, 6: the lowest cap, the highest, and the tolerance in hundredths; a fixed one has a tolerance of 0
--          7: the lease's id (16 bytes)  8: the holder, at most 255 bytes  9: the node, or ''  and what each script wants
--
-- Every script returns { granted, lasts in microseconds, refused, leased, leases, cap }; refused: '' or cap, node, opening, leases.

local STATE_FORMAT, STATE = '<I7I7I7I4I4I7I7I7I7I6c8', 71
local LEASE_FORMAT, LEASE = '<I4I7I7B', 19
local MOST_LEASES, MOST_LEASES_OF_NODE, SPARE_PART = 10000, 2500, 4
local INTERVAL, FEWEST, LEAST, MOST, MOST_AT_FIRST, MOST_SUM = 1e6, 10, 1000, 2 ^ 36, 1e7, 2 ^ 52
local KEPT = 86400

local lasts, pressed, node_cap = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3])
local cap_min, cap_max, tolerance = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local id, holder, node = ARGV[7], ARGV[8], ARGV[9]
local function is_count(n) return n and n >= 0 and n < 2 ^ 32 and n == math.floor(n) end
if #KEYS ~= 2 or not lasts or lasts < 1 or lasts > 6e8 or not (is_count(cap_min) and is_count(cap_max) and is_count(tolerance))
  or #id ~= 16 or #holder > 255 or #node > 256 then
  return redis.error_reply('ERR slots take a class, terms, a lease, its holder and its node')
end

local call = redis.call
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1e6 + tonumber(time[2])

-- Which run of a server this is, and for how long it has run, in seconds.
local function run()
  local info = call('INFO', 'server')
  return string.sub(string.match(info, 'run_id:(%w+)') or '', 1, 8), tonumber(string.match(info, 'uptime_in_seconds:(%d+)')) or 0
end

local function new_state()
  return { last = 0, behind = 0, opens = 0, leased = 0, cap = 0, ends = 0, finished = 0, ratios = 0, weights = 0, usual = 0, run = '' }
end

-- The state as it is stored; nil where none is, false where it cannot be read.
local function read_state()
  local packed = redis.pcall('HGET', KEYS[1], 's')
  local counted = redis.pcall('ZCARD', KEYS[2])
  if not packed then return nil end
  if type(packed) == 'table' or type(counted) == 'table' or #packed ~= STATE then return false end
  local s = new_state()
  s.last, s.behind, s.opens, s.leased, s.cap, s.ends, s.finished, s.ratios, s.weights, s.usual, s.run = struct.unpack(STATE_FORMAT, packed)
  return s
end

-- A server that was started, or took another's place, may not know the last leases: nothing is leased until those have ended.
-- It is looked for where nobody has asked for a while, since that takes longer than a call.
local function open_state()
  local s = read_state()
  -- A clock that is behind may be another's.
  local passed = s and clock + s.behind - s.last
  if passed and passed >= 0 and passed < 50000 then return s end
  local this_run, uptime = run()
  if not s then
    call('DEL', KEYS[1], KEYS[2])
    local lost = s == false or uptime * 1e6 <= lasts
    s = new_state()
    s.opens = lost and clock + lasts or 0
  elseif s.run ~= this_run then
    s.opens = math.max(s.opens, math.max(s.last, clock + s.behind) + lasts)
  end
  s.run = this_run
  return s
end
local s = open_state()

if clock + s.behind < s.last then s.behind = s.last - clock end
local now = clock + s.behind
s.last = now

local function read_lease(of)
  local packed = call('HGET', KEYS[1], 'l' .. of)
  if not packed or #packed < LEASE then return nil end
  local count, stops, since, length = struct.unpack(LEASE_FORMAT, packed)
  local at = LEASE + length
  return { count = count, stops = stops, since = since, holder = string.sub(packed, LEASE + 1, at), node = string.sub(packed, at + 1) }
end

local function add(field, change)
  if call('HINCRBY', KEYS[1], field, change) <= 0 then call('HDEL', KEYS[1], field) end
end

-- Counts a lease (1), or no more (-1).
local function count(lease, sign)
  s.leased = s.leased + sign * lease.count
  if lease.node == '' then return end
  add('n' .. lease.node, sign * lease.count)
  add('m' .. lease.node, sign)
end

local function remove(of, lease)
  count(lease, -1)
  call('HDEL', KEYS[1], 'l' .. of)
  call('ZREM', KEYS[2], of)
end

-- Writes a lease. Returns for how long it lasts.
local function write(of, lease)
  local ends = now + lasts
  if lease.stops > 0 and lease.stops < ends then ends = lease.stops end
  call('HSET', KEYS[1], 'l' .. of,
    struct.pack(LEASE_FORMAT, lease.count, lease.stops, now, #lease.holder) .. lease.holder .. lease.node)
  call('ZADD', KEYS[2], string.format('%.0f', ends), of)
  count(lease, 1)
  return ends - now
end

-- How many slots more can be leased for the node; where none can, why.
local function room()
  local here, leases = 0, 0
  if node ~= '' then
    local counted = call('HMGET', KEYS[1], 'n' .. node, 'm' .. node)
    here, leases = tonumber(counted[1]) or 0, tonumber(counted[2]) or 0
  end
  if call('ZCARD', KEYS[2]) >= MOST_LEASES or leases >= MOST_LEASES_OF_NODE then return 0, 'leases' end
  if s.leased >= s.cap then return 0, 'cap' end
  if not node_cap or node == '' then return s.cap - s.leased end
  if here >= node_cap then return 0, 'node' end
  return math.min(s.cap - s.leased, node_cap - here)
end

-- Takes down what the holder of a lease tells, by the weight of the lease.
local function learn(lease, finished, micros)
  if tolerance == 0 or finished == 0 then return end
  local usual, most = s.usual, 2 * tolerance
  if usual == 0 then usual, most = LEAST, MOST_AT_FIRST end
  local mean = math.min(math.floor(micros / finished), MOST)
  local ratio = math.min(math.floor(100 * mean / usual), most)
  local weight = math.floor(lease.count * math.min(now - lease.since, INTERVAL) / 1000)
  s.finished = math.min(s.finished + finished, MOST_SUM)
  s.ratios = math.min(s.ratios + weight * ratio, MOST_SUM)
  s.weights = math.min(s.weights + weight, MOST_SUM)
end

-- Whether requests of this interval were slow; takes it into what is usual.
local function is_slow()
  if s.finished < FEWEST or s.weights == 0 then return false end
  local ratio = math.floor(s.ratios / s.weights)
  local is_first = s.usual == 0
  if is_first then
    s.usual = math.floor(LEAST * ratio / 100)
  elseif ratio < 100 then
    s.usual = s.usual - math.ceil(s.usual * (100 - ratio) / 800)
  else
    s.usual = s.usual + math.ceil(s.usual * (ratio - 100) / 60000)
  end
  s.usual = math.max(LEAST, math.min(s.usual, MOST))
  return not is_first and ratio > tolerance
end

local function step()
  if tolerance == 0 then
    s.cap, s.ends, s.finished, s.ratios, s.weights, s.usual = cap_max, 0, 0, 0, 0, 0
    return
  end
  if s.cap == 0 then s.cap = cap_max end
  s.cap = math.max(cap_min, math.min(s.cap, cap_max))
  if now < s.ends then return end
  local slow = is_slow()
  if slow or pressed then
    s.cap = math.max(math.floor(s.cap * 3 / 4), cap_min)
  elseif s.leased * 4 >= s.cap * 3 then
    s.cap = math.min(s.cap + math.max(math.floor(cap_max / 20), 1), cap_max)
  end
  s.ends, s.finished, s.ratios, s.weights = now + INTERVAL, 0, 0, 0
end

-- What has ended leaves, at most so much in a call: what is left counts until the next.
local function expire()
  for _, of in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 256)) do
    local lease = read_lease(of)
    if lease then remove(of, lease) else call('ZREM', KEYS[2], of) end
  end
end

local function answer(granted, lasting, refused)
  local packed = struct.pack(STATE_FORMAT, s.last, s.behind, s.opens, s.leased, s.cap, s.ends, s.finished, s.ratios,
    s.weights, s.usual, s.run .. string.rep('\0', 8 - #s.run))
  call('HSET', KEYS[1], 's', packed)
  call('EXPIRE', KEYS[1], KEPT)
  call('EXPIRE', KEYS[2], KEPT)
  return { granted, lasting, refused, s.leased, call('ZCARD', KEYS[2]), s.cap }
end
