-- settle: counts reports on accounts, each of them once on an account, however often it arrives.
--
-- KEYS       the accounts' values, 1 to 64, in one slot where this runs on a Cluster
-- ARGV[1]    the length of a bucket in microseconds
-- ARGV[1+i]  the reports on KEYS[i], one after the other:
--              whether it has a mark, 1 or 0 (1 byte); one without it counts each time
--              how many charges and releases it has (2 bytes each)
--              the mark: its source and sequence (7 bytes each), 0 where it has none
--              charges, 20 bytes each: age in microseconds, cpu, memory, network (5 bytes each)
--              releases, 21 bytes each: the tick reserved in (6 bytes), cpu, memory, network (5 bytes each)
--            at most 61,440 bytes in one call, as long as 1,024 reports with a charge and a release each
--
-- A charge counts in the bucket in which it was spent; the caller leaves out what is older than the window, and what
-- has left by a fraction of a bucket counts in the oldest. A release takes from its own bucket, never below 0, and
-- nothing where that has left.
--
-- Returns one string: per account whether a clock stepped back had put its window in the future, 1 or 0 (1 byte), followed
-- by what became of each of its reports: A applied, D counted before, F full (the account knows 1,024 sources), U unreadable
-- (1 byte), and how many releases asked for more than their bucket held (2 bytes). All but A change nothing.

local REPORT_FORMAT, CHARGE_FORMAT, RELEASE_FORMAT = '<BI2I2c7I7', '<I5I5I5I5', '<I6I5I5I5'
local REPORT, CHARGE, RELEASE, MOST = 19, 20, 21, 1024

local size = 0
for i = 2, #ARGV do size = size + #ARGV[i] end
if #ARGV ~= 1 + #KEYS or size > MOST * (REPORT + CHARGE + RELEASE) then
  return redis.error_reply('ERR settle takes a bucket length, and reports for each account, of 61,440 bytes at most')
end
local now, windows = open_all(WHOLE)
-- A charge of this age or less is of the open bucket.
local open_age = seconds * 1e6 + micros - now * width

-- The number of the first closed bucket that is no older than `tick`, and whether it is that bucket.
local function find(w, tick)
  local age = now - tick
  -- As many as `age` can be that young.
  local low, high = max(0, w.n - age), w.n
  while low < high do
    local middle = floor((low + high) / 2)
    local other = (now - byte(bytes_at(w, place(w, middle)))) % 256
    if other == age then return middle, true end
    if other > age then low = middle + 1 else high = middle end
  end
  return low, false
end

-- Puts a piece where one of its kind is.
local function put(w, offset, piece)
  w.put = w.put or {}
  w.put[offset] = piece
end

-- The offset of the closed bucket of `tick`, which is made where there is none.
local function make(w, tick)
  local number, found = find(w, tick)
  if not found then
    local closed, marks = ordered(w)
    local before = number * CLOSED
    local empty = pack(CLOSED_FORMAT, tick % 256, 0, 0, 0)
    take(w, sub(closed, 1, before) .. empty, sub(closed, before + 1), marks)
  end
  return place(w, number)
end

-- Counts a cost in a closed bucket.
local function add_late(w, tick, cpu, mem, net)
  if cpu == 0 and mem == 0 and net == 0 then return end
  tick = max(tick, now - BUCKETS + 1)
  local offset = make(w, tick)
  local _, had_cpu, had_mem, had_net = unpack_struct(CLOSED_FORMAT, bytes_at(w, offset))
  local c, m, n = min(cpu, CAP - had_cpu), min(mem, CAP - had_mem), min(net, CAP - had_net)
  put(w, offset, pack(CLOSED_FORMAT, tick % 256, had_cpu + c, had_mem + m, had_net + n))
  w.cpu, w.mem, w.net = w.cpu + c, w.mem + m, w.net + n
end

-- Gives back what was reserved in a bucket, as far as it is there. Whether it was asked for more.
local function release(w, tick, cpu, mem, net)
  if tick > now or tick <= now - BUCKETS then return false end
  local offset, had_cpu, had_mem, had_net = nil, 0, 0, 0
  if tick == now then
    had_cpu, had_mem, had_net = w.ocpu, w.omem, w.onet
  else
    local number, found = find(w, tick)
    if found then
      offset = place(w, number)
      local _
      _, had_cpu, had_mem, had_net = unpack_struct(CLOSED_FORMAT, bytes_at(w, offset))
    end
  end
  local c, m, n = min(cpu, had_cpu), min(mem, had_mem), min(net, had_net)
  if offset then
    put(w, offset, pack(CLOSED_FORMAT, tick % 256, had_cpu - c, had_mem - m, had_net - n))
  elseif tick == now then
    w.ocpu, w.omem, w.onet = had_cpu - c, had_mem - m, had_net - n
  end
  w.cpu, w.mem, w.net = w.cpu - c, w.mem - m, w.net - n
  return c < cpu or m < mem or n < net
end

-- The offset of a source's mark, if it has one.
local function find_mark(w, source)
  local marks = HEADER + w.n * CLOSED - w.base + 1
  local position = string.find(w.text, source, marks, true)
  while position and (position - marks) % MARK ~= 0 do
    position = string.find(w.text, source, position + 1, true)
  end
  return position and position + w.base - 1
end

-- Whether a mark set at this tick modulo 2^32 still counts.
local function is_live(set)
  return (now - set) % TICKS < 2 * BUCKETS
end

-- Adds the mark of a source that has none, in place of those two windows old. Whether there is room.
local function add_mark(w, mark)
  local closed, marks = ordered(w)
  local live = {}
  for at = 1, #marks, MARK do
    local _, _, set = unpack_struct(MARK_FORMAT, marks, at)
    if is_live(set) then live[#live + 1] = sub(marks, at, at + MARK - 1) end
  end
  if #live >= MAX_MARKS then return false end
  live[#live + 1] = mark
  take(w, closed, '', table.concat(live))
  return true
end

-- Sets the report's mark. Returns A, D or F.
local function set_mark(w, source, sequence)
  local mark = pack(MARK_FORMAT, source, sequence, now % TICKS)
  local offset = find_mark(w, source)
  if not offset then return add_mark(w, mark) and 'A' or 'F' end
  local _, last, set = unpack_struct(MARK_FORMAT, bytes_at(w, offset))
  if sequence <= last and is_live(set) then return 'D' end
  put(w, offset, mark)
  w.marked = true
  return 'A'
end

local told = {}

-- Counts the reports on an account, one after the other, and tells what became of each.
local function settle(w, reports)
  local from = 1
  -- What is to be counted in the open bucket, and what in that of `late`: charges of different reports are one.
  local cpu, mem, net = 0, 0, 0
  local late, late_cpu, late_mem, late_net = now, 0, 0, 0
  while from <= #reports do
    local marked, charges, releases, source, sequence, at = unpack_struct(REPORT_FORMAT, reports, from)
    local after = at + charges * CHARGE
    from = after + releases * RELEASE
    local status, excess = not w and 'U' or marked > 0 and set_mark(w, source, sequence) or 'A', 0
    if status == 'A' then
      w.changed = true
      if releases > 0 then
        add(w, cpu, mem, net)
        add_late(w, late, late_cpu, late_mem, late_net)
        cpu, mem, net, late_cpu, late_mem, late_net = 0, 0, 0, 0, 0, 0
        for release_at = after, from - 1, RELEASE do
          if release(w, unpack_struct(RELEASE_FORMAT, reports, release_at)) then excess = excess + 1 end
        end
      end
      while at < after do
        local age, c, m, n
        age, c, m, n, at = unpack_struct(CHARGE_FORMAT, reports, at)
        if age <= open_age then
          cpu, mem, net = cpu + c, mem + m, net + n
        else
          local tick = tick_of(age)
          if tick ~= late then
            add_late(w, late, late_cpu, late_mem, late_net)
            late, late_cpu, late_mem, late_net = tick, 0, 0, 0
          end
          late_cpu, late_mem, late_net = late_cpu + c, late_mem + m, late_net + n
        end
      end
    end
    told[#told + 1] = status .. (excess > 0 and pack('<I2', excess) or '\0\0')
  end
  if w then
    add(w, cpu, mem, net)
    add_late(w, late, late_cpu, late_mem, late_net)
  end
end

-- All are counted before any is written, so that an argument that cannot be read changes nothing.
for i = 1, #KEYS do
  local w = windows[i]
  told[#told + 1] = w and w.rebased and '\1' or '\0'
  settle(w, ARGV[1 + i])
end
for i = 1, #KEYS do
  local w = windows[i]
  if w and (w.changed or w.rebased) then save(w) end
end
return table.concat(told)
