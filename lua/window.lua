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
-- it makes, so the whole value is touched as seldom as can be: within a bucket the first 42 bytes do, a report puts what
-- it changes where it lies, and of a window with cost in every bucket, the one that closes takes the place of the one that
-- leaves. A value expires at the earliest one window, at the latest two, after it was last written in more than its head.
--
-- What cannot be read as such a value is an error for its account, never an empty window; where it would stay
-- for ever, it gets two windows to live, after which the account starts anew.

local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_struct = struct.pack, struct.unpack
local sub, byte, floor, min, max = string.sub, string.byte, math.floor, math.min, math.max

local BUCKETS, CAP, MAX_MARKS, TICKS = 60, 2 ^ 40 - 1, 1024, 2 ^ 32
local HEADER, CLOSED, MARK = 42, 16, 18
local HEADER_FORMAT = '<BI6I6I6I6I5I5I5BB'
local CLOSED_FORMAT = '<BI5I5I5'
local MARK_FORMAT = '<c7I7I4'

-- How far open_all() reads. Redis formats a number that it is given by `printf`, which costs as much as the command.
local HEAD, WHOLE = '41', '-1'

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

-- A window is a table of what its head says and, where more of the value is known or changed:
--   text, base  the value from its byte `base` on
--   put         what is to be put into it, by offset: a closed bucket or a mark in the place of another
--   is_new      the text is to be written as a whole
--   turned      a bucket took the place of one that left
--   marked      marks were put in the place of others
--   rebased     it was dated back

-- Whether the closed buckets and marks are there, read now where they have not been.
local function has_rest(w)
  if not w.text then w.text, w.base = call('GETRANGE', w.key, '0', WHOLE), 0 end
  local marks = #w.text + w.base - HEADER - w.n * CLOSED
  return marks >= 0 and marks % MARK == 0
end

-- Reads a value as far as `last`; nil where it cannot be read.
local function open(key, last)
  local value = pcall_redis('GETRANGE', key, '0', last)
  if value == '' then
    return {
      key = key, tick = 0, cpu = 0, mem = 0, net = 0, ocpu = 0, omem = 0, onet = 0, n = 0, first = 0,
      text = '', base = HEADER, is_new = true,
    }
  end
  if type(value) == 'string' and #value >= HEADER then
    local version, tick, cpu, mem, net, ocpu, omem, onet, n, first = unpack_struct(HEADER_FORMAT, value)
    if version == 2 and n < BUCKETS and (first < n or first == 0) and cpu >= ocpu and mem >= omem and net >= onet then
      local w = {
        key = key, tick = tick, cpu = cpu, mem = mem, net = net, ocpu = ocpu, omem = omem, onet = onet,
        n = n, first = first, base = 0,
      }
      if last == HEAD then return w end
      w.text = value
      if has_rest(w) then return w end
    end
  end
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
    call('GETRANGE', key, '0', last) -- fails again, for all: a missing right, say, is no fault of the value
  end
  if call('PTTL', key) == -1 then call('PEXPIRE', key, ttl) end
  return nil
end

-- The offset of a closed bucket, of which the oldest has the number 0.
local function place(w, number)
  return HEADER + (w.first + number) % w.n * CLOSED
end

-- A string with what is to be at an offset of the value, and the position of that in it.
local function bytes_at(w, offset)
  local piece = w.put and w.put[offset]
  if piece then return piece, 1 end
  return w.text, offset - w.base + 1
end

-- A string with a part of it replaced.
local function replaced(text, offset, piece)
  return sub(text, 1, offset) .. piece .. sub(text, offset + #piece + 1)
end

-- The closed buckets, as they lie in the value, and the marks.
local function parts(w)
  local from = HEADER - w.base + 1
  local to = from + w.n * CLOSED
  local closed, marks = sub(w.text, from, to - 1), sub(w.text, to)
  for offset, piece in pairs(w.put or {}) do
    offset = offset - HEADER
    if offset < #closed then
      closed = replaced(closed, offset, piece)
    else
      marks = replaced(marks, offset - #closed, piece)
    end
  end
  return closed, marks
end

-- The closed buckets, oldest first, and the marks.
local function ordered(w)
  local closed, marks = parts(w)
  if w.first > 0 then
    closed = sub(closed, w.first * CLOSED + 1) .. sub(closed, 1, w.first * CLOSED)
  end
  return closed, marks
end

-- Takes the buckets of two strings as the closed ones, and marks.
local function take(w, closed, more, marks)
  w.text, w.base, w.is_new = closed .. more .. marks, HEADER, true
  w.n, w.first, w.put = (#closed + #more) / CLOSED, 0, nil
end

-- Dates everything back by as much as the clock has stepped back, so that all keeps its age.
local function rebase(w, by)
  local closed, marks = ordered(w)
  local buckets, dated = {}, {}
  for at = 1, #closed, CLOSED do
    buckets[#buckets + 1] = string.char((byte(closed, at) - by) % 256) .. sub(closed, at + 1, at + CLOSED - 1)
  end
  for at = 1, #marks, MARK do
    local source, sequence, set = unpack_struct(MARK_FORMAT, marks, at)
    dated[#dated + 1] = pack(MARK_FORMAT, source, sequence, (set - by) % TICKS)
  end
  take(w, table.concat(buckets), '', table.concat(dated))
  w.tick, w.rebased = w.tick - by, true
end

-- Brings a window of the last bucket to `now` where the oldest bucket leaves as the open one closes, and takes its place.
-- Whether it was so.
local function turn(w, now)
  if w.n == 0 or w.ocpu == 0 and w.omem == 0 and w.onet == 0 then return false end
  local offset = place(w, 0)
  local text, from = bytes_at(w, offset)
  if not text then
    text, from = call('GETRANGE', w.key, offset, offset + CLOSED - 1), 1
    if #text < CLOSED then return false end
  end
  local tick, cpu, mem, net = unpack_struct(CLOSED_FORMAT, text, from)
  if (now - tick) % 256 < BUCKETS then return false end
  w.put, w.turned = { [offset] = pack(CLOSED_FORMAT, w.tick % 256, w.ocpu, w.omem, w.onet) }, true
  w.first = (w.first + 1) % w.n
  w.cpu, w.mem, w.net = w.cpu - cpu, w.mem - mem, w.net - net
  w.tick, w.ocpu, w.omem, w.onet = now, 0, 0, 0
  return true
end

-- Brings a window to `now`: what has become too old leaves. False where the value cannot be read.
local function advance(w, now)
  if w.tick == now then return true end
  if w.tick == now - 1 and turn(w, now) then return w.cpu >= 0 and w.mem >= 0 and w.net >= 0 end
  if not has_rest(w) then return false end
  if w.tick > now then
    rebase(w, w.tick - now)
    return true
  end
  local closed, marks = ordered(w)
  local closing, from = '', 1
  if now - w.tick >= BUCKETS then
    w.cpu, w.mem, w.net, closed = 0, 0, 0, ''
  elseif w.ocpu > 0 or w.omem > 0 or w.onet > 0 then
    closing = pack(CLOSED_FORMAT, w.tick % 256, w.ocpu, w.omem, w.onet)
  end
  while from <= #closed do
    local tick, cpu, mem, net = unpack_struct(CLOSED_FORMAT, closed, from)
    if (now - tick) % 256 < BUCKETS then break end
    w.cpu, w.mem, w.net, from = w.cpu - cpu, w.mem - mem, w.net - net, from + CLOSED
  end
  if w.cpu < 0 or w.mem < 0 or w.net < 0 then return false end
  if from > 1 then closed = sub(closed, from) end
  take(w, closed, closing, marks)
  w.tick, w.ocpu, w.omem, w.onet = now, 0, 0, 0
  return true
end

-- Opens every key, as far as `last`, and brings it to now: the clock's tick, or the newest that is ahead of it by 5 s at
-- most. Returns that tick, the windows by position, false for each that cannot be read, and how many were rebased.
local function open_all(last)
  local windows, clock = {}, tick_of(0)
  local now, latest, rebased = clock, clock + math.ceil(5e6 / width), 0
  for i = 1, #KEYS do
    local w = open(KEYS[i], last)
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

local function head(w)
  return pack(HEADER_FORMAT, 2, w.tick, w.cpu, w.mem, w.net, w.ocpu, w.omem, w.onet, w.n, w.first)
end

-- Writes what has changed of a window. Where `first` is 0, the expiry was set in this bucket, since the value was written
-- as a whole or a round of the ring was over. Within a round, of 59 buckets at most, what is in the window lives long
-- enough without; a mark does not.
local function save(w)
  if w.is_new then
    call('SET', w.key, head(w) .. w.text, 'PX', ttl)
  else
    call('SETRANGE', w.key, '0', head(w))
    if w.turned and w.first == 0 or w.marked and w.first > 0 then call('PEXPIRE', w.key, ttl) end
  end
  if w.put then
    for offset, piece in next, w.put do call('SETRANGE', w.key, offset, piece) end
  end
end

-- Counts a cost in the open bucket.
local function add(w, cpu, mem, net)
  local c, m, n = min(cpu, CAP - w.ocpu), min(mem, CAP - w.omem), min(net, CAP - w.onet)
  w.ocpu, w.omem, w.onet = w.ocpu + c, w.omem + m, w.onet + n
  w.cpu, w.mem, w.net = w.cpu + c, w.mem + m, w.net + n
end
