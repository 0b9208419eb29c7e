-- The rule `blame`: cuts single accounts that load a node. quota-core's `adapt::blame` explains the arithmetic, and a model
-- test keeps the two equal. To be put before calibrate.lua. Amounts are in the units of window.lua, shares in millionths, and
-- kinds of account are 1 repo, 2 user, 3 ip; an account is its kind as a byte, followed by its name.
--
-- The field `cuts` of a node, little-endian (layout q1, version 1): version (1 byte), and per resource (cpu, memory, network)
-- what is spent within a window on average (6 bytes), the levels of repo, user and ip (6 each), and how many accounts are cut
-- (2); each with its kind (1), the length of its name (2), the name, its limit (6), when it was cut (7), and why: the share of
-- the capacity that it held (4), tenths of a fair share (4), and the pressure (4).
--
-- What a node tells of who uses what is empty, or per resource: whether it is told (1 byte), what the node can spend within a
-- window (6), how many accounts of repo, user and ip are active (4 each; 2^32-1: not told), how many intervals a window has
-- (2), and how many accounts follow (2); each with its kind (1), the length of its name (2), the name, and what it used
-- within a window, and would use at its present pace (6 each).

local call, floor, min, max = redis.call, math.floor, math.min, math.max
local pack, unpack_struct, sub = struct.pack, struct.unpack, string.sub

local MARGIN, GAIN, BEYOND, ENOUGH, MOST_CUT = 30000, 150000, 600000, 4, 333
local ORDER = { 2, 3, 1 }
local UNTOLD_COUNT = 2 ^ 32 - 1
local CUTS_VERSION, CUT_FORMAT = 1, '<I6I7I4I4I4'

-- What a share in millionths leaves of an amount, without a product beyond 2^53.
local function share(amount, millionths)
  local all = floor(amount / 1e6)
  return all * millionths + floor((amount - all * 1e6) * millionths / 1e6)
end

-- An amount as a share of a whole, at most 1, without a product beyond 2^53.
local function in_millionths(amount, whole)
  if amount >= whole then return 1e6 end
  local millionths = 0
  for _ = 1, 6 do
    local digit = floor(amount * 10 / whole)
    millionths, amount = millionths * 10 + digit, amount * 10 - digit * whole
  end
  return millionths
end

local function nobody_cut()
  return { mean = 0, levels = { 0, 0, 0 }, accounts = {} }
end

local function kind_of(account)
  return string.byte(account)
end

-- The account at a place, and what comes after it.
local function read_account(packed, at)
  local kind, length = unpack_struct('<BI2', packed, at)
  local after = at + 3 + length
  if kind < 1 or kind > 3 or after > #packed + 1 then error('no account') end
  return string.char(kind) .. sub(packed, at + 3, after - 1), after
end

local function parse_cuts(packed)
  if string.byte(packed) ~= CUTS_VERSION then error('no such version') end
  local at, cuts = 2, {}
  for resource = 1, 3 do
    local mean, l1, l2, l3, count
    mean, l1, l2, l3, count, at = unpack_struct('<I6I6I6I6I2', packed, at)
    local accounts, account = {}
    for _ = 1, count do
      account, at = read_account(packed, at)
      local cut = {}
      cut.limit, cut.since, cut.share, cut.tenths, cut.pressure, at = unpack_struct(CUT_FORMAT, packed, at)
      accounts[account] = cut
    end
    cuts[resource] = { mean = mean, levels = { l1, l2, l3 }, accounts = accounts }
  end
  if at ~= #packed + 1 then error('a tail') end
  return cuts
end

-- Who is cut of each resource, and whether what is stored is no such thing.
local function read_cuts(packed)
  if packed then
    local parsed, cuts = pcall(parse_cuts, packed)
    if parsed then return cuts, false end
  end
  return { nobody_cut(), nobody_cut(), nobody_cut() }, packed and true or false
end

local function write_cuts(all)
  local parts = { string.char(CUTS_VERSION) }
  for _, cuts in ipairs(all) do
    local l, names = cuts.levels, {}
    for account in pairs(cuts.accounts) do names[#names + 1] = account end
    parts[#parts + 1] = pack('<I6I6I6I6I2', cuts.mean, l[1], l[2], l[3], #names)
    for _, account in ipairs(names) do
      local cut = cuts.accounts[account]
      parts[#parts + 1] = pack('<BI2', kind_of(account), #account - 1)
      parts[#parts + 1] = sub(account, 2)
      parts[#parts + 1] = pack(CUT_FORMAT, cut.limit, cut.since, cut.share, cut.tenths, cut.pressure)
    end
  end
  return table.concat(parts)
end

-- Who uses how much of each resource; nothing of one of which that is not told.
local function read_load(packed)
  local loads, at = {}, 1
  if packed == '' then return loads end
  for resource = 1, 3 do
    local told, count
    local load = { active = {}, accounts = {} }
    told, load.capacity, load.active[1], load.active[2], load.active[3], load.intervals, count, at =
      unpack_struct('<BI6I4I4I4I2I2', packed, at)
    local account
    for _ = 1, count do
      account, at = read_account(packed, at)
      local used, rate
      used, rate, at = unpack_struct('<I6I6', packed, at)
      load.accounts[account] = { used = used, rate = rate }
    end
    loads[resource] = told == 1 and load or nil
  end
  return loads
end

local NOTHING = { used = 0, rate = 0 }

-- One calibration of a resource: who is cut, who uses what, and how the resource is adapted.
local Step = {}
Step.__index = Step

function Step:spending(account)
  return self.load.accounts[account] or NOTHING
end

function Step:fair_share(kind)
  local active = self.load.active[kind]
  return floor(share(self.load.capacity, self.p.soft) / max(active == UNTOLD_COUNT and 0 or active, 1))
end

-- Never below the fair share.
function Step:within(kind, limit)
  local range = self.p.kinds[kind]
  return min(max(limit, self:fair_share(kind), range.min), range.max)
end

function Step:target()
  return share(self.load.capacity, max(self.p.soft - MARGIN, 0))
end

-- Moves a level towards what the cut accounts of a kind may use, each the same, beside what all others do.
function Step:move_level(kind)
  local cuts, count, sum = self.cuts, 0, 0
  for account, cut in pairs(cuts.accounts) do
    local used = self:spending(account).used
    if kind_of(account) == kind and used >= cut.limit - floor(cut.limit / 4) then count, sum = count + 1, sum + used end
  end
  if count == 0 then return end
  local ideal = floor(max(self:target() - max(cuts.mean - sum, 0), 0) / count)
  local level = cuts.levels[kind]
  local holds = max(level, floor(sum / count))
  local moved = ideal > holds and level + share(ideal - holds, GAIN) or max(level - share(holds - ideal, GAIN), 0)
  cuts.levels[kind] = self:within(kind, moved)
end

-- What accounts over their limit still spend beyond their level.
function Step:still_running()
  local most = 0
  for kind = 1, 3 do
    local beyond = 0
    for account, cut in pairs(self.cuts.accounts) do
      local spending = self:spending(account)
      if kind_of(account) == kind and spending.used >= cut.limit then
        beyond = beyond + spending.rate - self.cuts.levels[kind]
      end
    end
    most = max(most, beyond)
  end
  return most
end

-- Down to where the highest must be brought so that together they lose `need`.
local function level_of(amounts, need)
  table.sort(amounts, function(a, b) return a > b end)
  local above = 0
  for place, amount in ipairs(amounts) do
    local before = place - 1
    if above - before * amount >= need then return floor((above - need) / before) end
    above = above + amount
  end
  return #amounts == 0 and 0 or floor(max(above - need, 0) / #amounts)
end

function Step:stands_out(kind, spending)
  local fair = self:fair_share(kind)
  return spending.used >= fair + share(fair, BEYOND)
end

function Step:can_give(kind)
  return self.cuts.levels[kind] > self:within(kind, 0)
end

-- Cuts accounts of the kind whose heaviest would keep the most, in fair shares.
function Step:blame(need)
  local cuts, chosen, highest, found = self.cuts
  local any_can_give = self:can_give(1) or self:can_give(2) or self:can_give(3)
  for _, kind in ipairs(ORDER) do
    local range = self.p.kinds[kind]
    local can_be_cut = self.load.active[kind] ~= UNTOLD_COUNT and range.min < range.max
    if can_be_cut and (not any_can_give or self:can_give(kind)) then
      local rates = {}
      for account, spending in pairs(self.load.accounts) do
        if kind_of(account) == kind then rates[#rates + 1] = spending.rate end
      end
      local down_to = level_of(rates, need)
      local height = min(floor(down_to / max(self:fair_share(kind), 1)), ENOUGH)
      if not chosen or height > highest then chosen, highest, found = kind, height, self:within(kind, down_to) end
    end
  end
  if not chosen then return end
  local level = cuts.levels[chosen]
  if level == 0 then
    level = found
  elseif cuts.mean >= share(self.load.capacity, self.p.soft) then
    level = min(level, found)
  end
  cuts.levels[chosen] = level
  for account, spending in pairs(self.load.accounts) do
    if kind_of(account) == chosen and not cuts.accounts[account]
      and spending.rate > level and self:stands_out(chosen, spending) then
      local tenths = floor(spending.rate * 10 / max(self:fair_share(chosen), 1))
      cuts.accounts[account] = {
        limit = self:within(chosen, min(spending.used, level)), since = self.now,
        share = in_millionths(spending.rate, max(self.load.capacity, 1)),
        tenths = min(tenths, 2 ^ 32 - 1), pressure = self.pressure,
      }
    end
  end
end

function Step:move_limits()
  local cuts = self.cuts
  local is_idle = cuts.mean < floor(share(self.load.capacity, self.p.soft) / 2)
  for account, cut in pairs(cuts.accounts) do
    local kind, spending = kind_of(account), self:spending(account)
    local level = self:within(kind, cuts.levels[kind])
    if spending.used < level - floor(level / 4) and spending.rate <= level then
      local step = self.p.kinds[kind].step
      if not is_idle then step = max(min(step, floor(cut.limit / 4)), 1) end
      cut.limit = cut.limit + step
    elseif self.hot then
      cut.limit = min(max(cut.limit, self:within(kind, 0)), level)
    elseif cut.limit > level then
      cut.limit = cut.limit - share(cut.limit - level, GAIN)
    else
      cut.limit = min(cut.limit + floor(level / self.load.intervals), level)
    end
  end
end

-- Forgets those whose limit is no longer below the largest of their kind, and of too many those that are cut least.
local function forget(cuts, p)
  local lost, all, any = {}, {}, {}
  for account, cut in pairs(cuts.accounts) do
    local less = p.kinds[kind_of(account)].max - cut.limit
    if less > 0 then lost[account], all[#all + 1] = less, less end
  end
  local first_to_go = 0
  if #all > MOST_CUT then
    table.sort(all, function(a, b) return a > b end)
    first_to_go = all[MOST_CUT + 1]
  end
  local kept = {}
  for account, less in pairs(lost) do
    if less > first_to_go then kept[account], any[kind_of(account)] = cuts.accounts[account], true end
  end
  cuts.accounts = kept
  for kind = 1, 3 do
    if not any[kind] then cuts.levels[kind] = 0 end
  end
end

-- Raises the limits of accounts by so many steps.
local function raise_cuts(cuts, p, steps)
  for account, cut in pairs(cuts.accounts) do
    cut.limit = cut.limit + steps * p.kinds[kind_of(account)].step
  end
  forget(cuts, p)
end

-- Takes a calibration, under a mean pressure.
local function step_cuts(cuts, load, p, pressure, hot, killed, now)
  local step = setmetatable({ cuts = cuts, load = load, p = p, pressure = pressure, hot = hot, now = now }, Step)
  local spent, parts = share(load.capacity, pressure), max(floor(load.intervals / 2), 1)
  cuts.mean = cuts.mean == 0 and spent or cuts.mean - floor(cuts.mean / parts) + floor(spent / parts)
  for kind = 1, 3 do step:move_level(kind) end
  local excess = max(spent - step:target(), 0)
  if killed then
    step:blame(max(excess, spent - share(spent, p.factor), 1))
  elseif hot and step:still_running() < excess then
    step:blame(excess)
  end
  step:move_limits()
  forget(cuts, p)
end
