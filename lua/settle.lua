-- settle: counts a report on its accounts, each of them once, however often the report arrives.
--
-- KEYS        the accounts' values, 1 to 64, in one slot where this runs on a Cluster
-- ARGV[1]     the length of a bucket in microseconds
-- ARGV[2]     the report's source (7 bytes) and sequence (7 bytes), or '' to count it each time
-- ARGV[2i+1]  charges to KEYS[i], 20 bytes each: age in microseconds, cpu, memory, network (5 bytes each)
-- ARGV[2i+2]  releases to KEYS[i], 21 bytes each: the tick reserved in (6 bytes), cpu, memory, network (5 bytes each)
--             1,024 charges and 1,024 releases at most in one call
--
-- A charge counts in the bucket in which it was spent; the caller leaves out what is older than the window, and what
-- has left by a fraction of a bucket counts in the oldest. A release takes from its own bucket, never below 0, and
-- nothing where that has left.
--
-- Returns { rebased, excess, status }: how many windows a clock stepped back had put in the future, how many
-- releases asked for more than their bucket held, and per account one byte: A applied, D counted before, F full (it
-- knows 1,024 sources), U unreadable. All but A change nothing of their account.

local all_charges, all_releases = 0, 0
for i = 1, #KEYS do
  local charges, releases = ARGV[2 * i + 1], ARGV[2 * i + 2]
  if not releases or #charges % 20 ~= 0 or #releases % 21 ~= 0 then
    return redis.error_reply('ERR settle takes charges of 20 bytes and releases of 21 bytes for each account')
  end
  all_charges, all_releases = all_charges + #charges / 20, all_releases + #releases / 21
end
if #ARGV ~= 2 + 2 * #KEYS or (#ARGV[2] ~= 0 and #ARGV[2] ~= 14) or all_charges > 1024 or all_releases > 1024 then
  return redis.error_reply('ERR settle takes a bucket length, a mark of 0 or 14 bytes, and 1,024 charges at most')
end
local now, windows, rebased = open_all()
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

-- Puts `bucket` in place of the `replaced` bytes at a position.
local function splice(w, at, replaced, bucket)
  w.closed = sub(w.closed, 1, at - 1) .. bucket .. sub(w.closed, at + replaced)
end

local function add_late(w, tick, cpu, mem, net)
  local at, found = find(w, tick)
  local had_cpu, had_mem, had_net = amounts(w, at, found)
  local c, m, n = min(cpu, CAP - had_cpu), min(mem, CAP - had_mem), min(net, CAP - had_net)
  splice(w, at, found and CLOSED or 0, pack(CLOSED_FORMAT, tick % 256, had_cpu + c, had_mem + m, had_net + n))
  w.cpu, w.mem, w.net = w.cpu + c, w.mem + m, w.net + n
end

local function charge(w, age, cpu, mem, net)
  if cpu == 0 and mem == 0 and net == 0 then return end
  local tick = tick_of(age)
  if tick >= now then add(w, cpu, mem, net) else add_late(w, math.max(tick, now - BUCKETS + 1), cpu, mem, net) end
end

local function release(w, tick, cpu, mem, net)
  if tick > now or tick <= now - BUCKETS then return end
  local had_cpu, had_mem, had_net, at, found = w.ocpu, w.omem, w.onet, nil, nil
  if tick < now then
    at, found = find(w, tick)
    had_cpu, had_mem, had_net = amounts(w, at, found)
  end
  local c, m, n = min(cpu, had_cpu), min(mem, had_mem), min(net, had_net)
  if c < cpu or m < mem or n < net then excess = excess + 1 end
  if tick == now then
    w.ocpu, w.omem, w.onet = had_cpu - c, had_mem - m, had_net - n
  elseif found then
    splice(w, at, CLOSED, pack(CLOSED_FORMAT, tick % 256, had_cpu - c, had_mem - m, had_net - n))
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

local function settle(w, charges, releases)
  if not w or not read_rest(w) then return 'U' end
  if #ARGV[2] > 0 then
    local status = set_mark(w, unpack_struct('<c7I7', ARGV[2]))
    if status ~= 'A' then
      if w.rebased then save(w) end
      return status
    end
  end
  for at = 1, #releases, 21 do
    release(w, unpack_struct('<I6I5I5I5', releases, at))
  end
  for at = 1, #charges, 20 do
    charge(w, unpack_struct('<I5I5I5I5', charges, at))
  end
  save(w)
  return 'A'
end

local status = {}
for i = 1, #KEYS do
  status[i] = settle(windows[i], ARGV[2 * i + 1], ARGV[2 * i + 2])
end
return { rebased, excess, table.concat(status) }
