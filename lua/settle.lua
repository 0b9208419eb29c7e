-- settle: counts reports on accounts, each of them once on an account, however often it arrives.
--
-- KEYS       the accounts' values, 1 to 64, in one slot where this runs on a Cluster
-- ARGV[1]    the length of a bucket in microseconds
-- ARGV[1+i]  the reports on KEYS[i], one after the other:
--              whether it has a mark, 1 or 0 (1 byte); one without it counts each time
--              how many charges and releases it has (2 bytes each)
--              where it has a mark, its source and sequence (7 bytes each)
--              charges, 20 bytes each: age in microseconds, cpu, memory, network (5 bytes each)
--              releases, 21 bytes each: the tick reserved in (6 bytes), cpu, memory, network (5 bytes each)
--            1,024 reports, charges and releases at most in one call
--
-- A charge counts in the bucket in which it was spent; the caller leaves out what is older than the window, and what
-- has left by a fraction of a bucket counts in the oldest. A release takes from its own bucket, never below 0, and
-- nothing where that has left.
--
-- Returns one string: per account whether a clock stepped back had put its window in the future, 1 or 0 (1 byte), followed
-- by what became of each of its reports: A applied, D counted before, F full (the account knows 1,024 sources), U unreadable
-- (1 byte), and how many releases asked for more than their bucket held (2 bytes). All but A change nothing.

local REPORT, MARKED, CHARGE, RELEASE, MOST = '<BI2I2', 14, 20, 21, 1024

local function check_all()
  local reports, charges, releases = 0, 0, 0
  for i = 1, #KEYS do
    local packed, at = ARGV[1 + i] or '', 1
    while at + 4 <= #packed do
      local marked, some, given = unpack_struct(REPORT, packed, at)
      at = at + 5 + (marked > 0 and MARKED or 0) + some * CHARGE + given * RELEASE
      reports, charges, releases = reports + 1, charges + some, releases + given
    end
    if at ~= #packed + 1 or at == 1 then return false end
  end
  return #ARGV == 1 + #KEYS and math.max(reports, charges, releases) <= MOST
end
if not check_all() then
  return redis.error_reply('ERR settle takes a bucket length, and reports for each account, with 1,024 charges at most')
end
local now, windows = open_all()
local excess = 0

-- The position of the first closed bucket that is no older than `tick`, and whether it is that bucket.
local function find(w, tick)
  local low, high, age = 0, #w.closed / CLOSED, now - tick
  while low < high do
    local middle = floor((low + high) / 2)
    if (now - byte(w.closed, middle * CLOSED + 1)) % 256 > age then low = middle + 1 else high = middle end
  end
  local at = low * CLOSED + 1
  return at, at <= #w.closed and (now - byte(w.closed, at)) % 256 == age
end

-- The amounts of the closed bucket at a position, where it was found.
local function amounts(w, at, found)
  if not found then return 0, 0, 0 end
  local _, cpu, mem, net = unpack_struct(CLOSED_FORMAT, w.closed, at)
  return cpu, mem, net
end

-- A closed bucket that reports change. It is read once and written once, whatever they say of it.
local function late(w, tick)
  local bucket = w.late[tick]
  if not bucket then
    local at, found = find(w, tick)
    local cpu, mem, net = amounts(w, at, found)
    bucket = { cpu = cpu, mem = mem, net = net, found = found }
    w.late[tick] = bucket
  end
  return bucket
end

local function write_late(w)
  for tick, b in pairs(w.late) do
    if b.found or b.charged then
      local at = find(w, tick)
      local after = b.found and at + CLOSED or at
      local packed = pack(CLOSED_FORMAT, tick % 256, b.cpu, b.mem, b.net)
      w.closed = sub(w.closed, 1, at - 1) .. packed .. sub(w.closed, after)
    end
  end
end

local function add_late(w, tick, cpu, mem, net)
  local b = late(w, tick)
  local c, m, n = min(cpu, CAP - b.cpu), min(mem, CAP - b.mem), min(net, CAP - b.net)
  b.cpu, b.mem, b.net, b.charged = b.cpu + c, b.mem + m, b.net + n, true
  w.cpu, w.mem, w.net = w.cpu + c, w.mem + m, w.net + n
end

local function charge(w, age, cpu, mem, net)
  if cpu == 0 and mem == 0 and net == 0 then return end
  local tick = tick_of(age)
  if tick >= now then add(w, cpu, mem, net) else add_late(w, math.max(tick, now - BUCKETS + 1), cpu, mem, net) end
end

local function release(w, tick, cpu, mem, net)
  if tick > now or tick <= now - BUCKETS then return end
  local b = tick < now and late(w, tick)
  local had_cpu, had_mem, had_net = b and b.cpu or w.ocpu, b and b.mem or w.omem, b and b.net or w.onet
  local c, m, n = min(cpu, had_cpu), min(mem, had_mem), min(net, had_net)
  if c < cpu or m < mem or n < net then excess = excess + 1 end
  if b then
    b.cpu, b.mem, b.net = had_cpu - c, had_mem - m, had_net - n
  else
    w.ocpu, w.omem, w.onet = had_cpu - c, had_mem - m, had_net - n
  end
  w.cpu, w.mem, w.net = w.cpu - c, w.mem - m, w.net - n
end

-- The position of a source's mark, if it has one.
local function find_mark(w, source)
  local at = string.find(w.marks, source, 1, true)
  while at and (at - 1) % MARK ~= 0 do
    at = string.find(w.marks, source, at + 1, true)
  end
  return at
end

-- Whether a mark set at this tick modulo 2^32 still counts.
local function is_live(set)
  return (now - set) % TICKS < 2 * BUCKETS
end

-- The marks without those two windows old.
local function live_marks(w)
  local live = {}
  for at = 1, #w.marks, MARK do
    local _, _, set = unpack_struct(MARK_FORMAT, w.marks, at)
    if is_live(set) then live[#live + 1] = sub(w.marks, at, at + MARK - 1) end
  end
  return live
end

-- Sets the report's mark. Returns A, D or F. Old marks are looked for only when a new source needs room.
local function set_mark(w, source, sequence)
  local mark = pack(MARK_FORMAT, source, sequence, now % TICKS)
  local at = find_mark(w, source)
  if at then
    local _, last, set = unpack_struct(MARK_FORMAT, w.marks, at)
    if sequence <= last and is_live(set) then return 'D' end
    w.marks = sub(w.marks, 1, at - 1) .. mark .. sub(w.marks, at + MARK)
  else
    local live = live_marks(w)
    if #live >= MAX_MARKS then return 'F' end
    live[#live + 1] = mark
    w.marks = table.concat(live)
  end
  return 'A'
end

-- Counts the report at a position. Returns what became of it, and where the next is.
local function settle(w, reports, at)
  local marked, charges, releases
  marked, charges, releases, at = unpack_struct(REPORT, reports, at)
  local first = at + (marked > 0 and MARKED or 0)
  local after = first + charges * CHARGE
  local next_at = after + releases * RELEASE
  excess = 0
  if not w then return 'U', next_at end
  if marked > 0 then
    local source, sequence = unpack_struct('<c7I7', reports, at)
    local status = set_mark(w, source, sequence)
    if status ~= 'A' then return status, next_at end
  end
  for release_at = after, next_at - 1, RELEASE do
    release(w, unpack_struct('<I6I5I5I5', reports, release_at))
  end
  for charge_at = first, after - 1, CHARGE do
    charge(w, unpack_struct('<I5I5I5I5', reports, charge_at))
  end
  w.changed = true
  return 'A', next_at
end

local told = {}
for i = 1, #KEYS do
  local w, reports, at, status = windows[i], ARGV[1 + i], 1
  if w and not read_rest(w) then w = false end
  if w then w.late = {} end
  told[#told + 1] = w and w.rebased and '\1' or '\0'
  while at <= #reports do
    status, at = settle(w, reports, at)
    told[#told + 1] = status .. pack('<I2', excess)
  end
  if w and (w.changed or w.rebased) then
    write_late(w)
    save(w)
  end
end
return table.concat(told)
