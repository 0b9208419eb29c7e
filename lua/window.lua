-- The sliding window of an account, packed in one string. Every script of this folder starts with this text.
--
-- The same arithmetic is quota-core's `Ledger`, where it is explained; a model test keeps the two equal.
-- Amounts are integers: CPU in microseconds, memory in KiB-seconds, network in bytes. Time is TIME's alone,
-- counted in buckets of ARGV[1] microseconds: the bucket at a moment, its tick, is the moment / ARGV[1].
--
-- Value, little-endian (layout q1, version 2; version 1 had no `first`):
--   offset  bytes
--        0      1  version, 2
--        1      6  tick of the open bucket: the value is true as of then
--        7     18  sums over the window: cpu, memory, network, 6 bytes each
--       25     15  the open bucket's amounts, 5 bytes each
--       40      1  n, the number of closed buckets, 0 to 59
--       41      1  first, the place of the oldest of them
--       42   16*n  closed buckets, a ring from `first` on: tick modulo 256 (1 byte), amounts (5 bytes each)
--  42+16*n   18*m  marks of reports: source (7 bytes), sequence (7 bytes), tick when set modulo 2^32 (4 bytes)
-- A bucket's amount saturates at 2^40-1, since struct.pack wraps silently. So a sum stays below 2^46, and every
-- number is an exact double. Closed buckets without cost are not kept. Redis' Lua hashes every byte of a string that
-- it makes, so the whole value is touched as seldom as can be: within a bucket the first 42 bytes do, and of a window
-- with cost in every bucket, the one that closes takes the place of the one that leaves. A value expires at the
-- earliest one window, at the latest two, after it was last written in more than its head.
--
-- What cannot be read as such a value is an error for its account, never an empty window; where it would stay
-- for ever, it gets two windows to live, after which the account starts anew.

local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_struct = struct.pack, struct.unpack
local sub, byte, floor, min = string.sub, string.byte, math.floor, math.min

local BUCKETS, CAP, MAX_MARKS, TICKS = 60, 2 ^ 40 - 1, 1024, 2 ^ 32
local HEADER, CLOSED, MARK = 42, 16, 18
local HEADER_FORMAT = '<BI6I6I6I6I5I5I5BB'
local CLOSED_FORMAT = '<BI5I5I5'
local MARK_FORMAT = '<c7I7I4'

local time = redis.call('TIME')
local seconds, micros = tonumber(time[1]), tonumber(time[2])

local width = tonumber(ARGV[1])
if not width or width < 1000 or width > 6e7 or width % 1000 ~= 0 then
  return redis.error_reply('ERR ARGV[1] is no bucket length')
end
if #KEYS < 1 or #KEYS > 64 then
  return redis.error_reply('ERR 1 to 64 accounts a call')
end
local ttl = 2 * BUCKETS * width / 1000

-- The tick of a moment `age` microseconds ago.
local function tick_of(age)
  return floor((seconds * 1e6 + micros - age) / width)
end

-- Reads the head of a value; nil where it cannot be read.
local function open(key)
  local head = pcall_redis('GETRANGE', key, 0, HEADER - 1)
  if head == '' then
    return { key = key, tick = 0, cpu = 0, mem = 0, net = 0, ocpu = 0, omem = 0, onet = 0, closed = '', marks = '' }
  end
  if type(head) == 'string' and #head == HEADER then
    local version, tick, cpu, mem, net, ocpu, omem, onet, n, first = unpack_struct(HEADER_FORMAT, head)
    if version == 2 and n < BUCKETS and (first < n or first == 0) and cpu >= ocpu and mem >= omem and net >= onet then
      return {
        key = key, tick = tick, cpu = cpu, mem = mem, net = net, ocpu = ocpu, omem = omem, onet = onet,
        n = n, first = first,
      }
    end
  end
  if type(head) == 'table' and not string.find(head.err, 'WRONGTYPE', 1, true) then
    call('GETRANGE', key, 0, HEADER - 1) -- fails again, for all: a missing right, say, is no fault of the value
  end
  if call('PTTL', key) == -1 then call('PEXPIRE', key, ttl) end
  return nil
end

-- Reads the closed buckets, oldest first, and the marks, where open() has not. False where they cannot be read.
local function read_rest(w)
  if w.closed then return true end
  local rest = call('GETRANGE', w.key, HEADER, -1)
  local closed = w.n * CLOSED
  local marks = #rest - closed
  if marks < 0 or marks % MARK ~= 0 then return false end
  w.closed, w.marks = sub(rest, 1, closed), sub(rest, closed + 1)
  if w.first > 0 then
    w.closed = sub(w.closed, w.first * CLOSED + 1) .. sub(w.closed, 1, w.first * CLOSED)
  end
  if w.turned then
    w.closed = sub(w.closed, 1, -CLOSED - 1) .. w.turned.bucket
  end
  return true
end

-- Dates everything back by as much as the clock has stepped back, so that all keeps its age.
local function rebase(w, by)
  local closed, marks = {}, {}
  for at = 1, #w.closed, CLOSED do
    closed[#closed + 1] = string.char((byte(w.closed, at) - by) % 256) .. sub(w.closed, at + 1, at + CLOSED - 1)
  end
  for at = 1, #w.marks, MARK do
    local source, sequence, set = unpack_struct(MARK_FORMAT, w.marks, at)
    marks[#marks + 1] = pack(MARK_FORMAT, source, sequence, (set - by) % TICKS)
  end
  w.closed, w.marks, w.tick, w.rebased = table.concat(closed), table.concat(marks), w.tick - by, true
end

-- Brings a window of the last bucket to `now` without its rest, where the oldest bucket leaves as the open one closes.
-- Whether it was so.
local function turn(w, now)
  if w.closed or w.n == 0 or w.ocpu == 0 and w.omem == 0 and w.onet == 0 then return false end
  local at = HEADER + w.first * CLOSED
  local oldest = call('GETRANGE', w.key, at, at + CLOSED - 1)
  if #oldest < CLOSED then return false end
  local tick, cpu, mem, net = unpack_struct(CLOSED_FORMAT, oldest)
  if (now - tick) % 256 < BUCKETS then return false end
  w.turned = { at = at, bucket = pack(CLOSED_FORMAT, w.tick % 256, w.ocpu, w.omem, w.onet) }
  w.first = (w.first + 1) % w.n
  w.cpu, w.mem, w.net = w.cpu - cpu, w.mem - mem, w.net - net
  w.tick, w.ocpu, w.omem, w.onet = now, 0, 0, 0
  return true
end

-- Brings a window to `now`: what has become too old leaves. False where the value cannot be read.
local function advance(w, now)
  if w.tick == now then return true end
  if w.tick == now - 1 and turn(w, now) then return w.cpu >= 0 and w.mem >= 0 and w.net >= 0 end
  if not read_rest(w) then return false end
  if w.tick > now then
    rebase(w, w.tick - now)
    return true
  end
  local closed, at = w.closed, 1
  if w.ocpu > 0 or w.omem > 0 or w.onet > 0 then
    closed = closed .. pack(CLOSED_FORMAT, w.tick % 256, w.ocpu, w.omem, w.onet)
  end
  if now - w.tick >= BUCKETS then
    w.cpu, w.mem, w.net, at = 0, 0, 0, #closed + 1
  end
  while at <= #closed do
    local tick, cpu, mem, net = unpack_struct(CLOSED_FORMAT, closed, at)
    if (now - tick) % 256 < BUCKETS then break end
    w.cpu, w.mem, w.net, at = w.cpu - cpu, w.mem - mem, w.net - net, at + CLOSED
  end
  if w.cpu < 0 or w.mem < 0 or w.net < 0 then return false end
  w.closed = sub(closed, at)
  w.tick, w.ocpu, w.omem, w.onet = now, 0, 0, 0
  return true
end

-- Opens every key and brings it to now: the clock's tick, or the newest that is ahead of it by 5 s at most. Returns
-- that tick, the windows by position, false for each that cannot be read, and how many were rebased.
local function open_all()
  local windows, clock = {}, tick_of(0)
  local now, latest, rebased = clock, clock + math.ceil(5e6 / width), 0
  for i = 1, #KEYS do
    local w = open(KEYS[i])
    windows[i] = w or false
    if w and w.tick > now and w.tick <= latest then now = w.tick end
  end
  for i = 1, #KEYS do
    local w = windows[i]
    if w and not advance(w, now) then
      windows[i] = false
      if call('PTTL', w.key) == -1 then call('PEXPIRE', w.key, ttl) end
    elseif w and w.rebased then
      rebased = rebased + 1
    end
  end
  return now, windows, rebased
end

-- The head of a value, as it is where the closed buckets follow oldest first, or were not read.
local function head(w)
  local n, first = w.n, w.first
  if w.closed then n, first = #w.closed / CLOSED, 0 end
  return pack(HEADER_FORMAT, 2, w.tick, w.cpu, w.mem, w.net, w.ocpu, w.omem, w.onet, n, first)
end

-- Writes a window: what has changed of it, or all where the rest was read.
local function save(w)
  if w.closed then
    call('SET', w.key, head(w) .. w.closed .. w.marks, 'PX', ttl)
    return
  end
  if w.turned then
    call('SETRANGE', w.key, w.turned.at, w.turned.bucket)
    -- A round takes n < 60 buckets: a second command in one of them is enough.
    if w.first == 0 then call('PEXPIRE', w.key, ttl) end
  end
  call('SETRANGE', w.key, 0, head(w))
end

-- Counts a cost in the open bucket.
local function add(w, cpu, mem, net)
  local c, m, n = min(cpu, CAP - w.ocpu), min(mem, CAP - w.omem), min(net, CAP - w.onet)
  w.ocpu, w.omem, w.onet = w.ocpu + c, w.omem + m, w.onet + n
  w.cpu, w.mem, w.net = w.cpu + c, w.mem + m, w.net + n
end
