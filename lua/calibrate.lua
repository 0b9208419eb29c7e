-- calibrate: takes in what a node tells of its pressure, and moves its limits at most once an interval.
--
-- The same arithmetic is quota-core's `Controller`, where it is explained; a model test keeps the two equal. Time is
-- TIME's alone, in microseconds; limits are in the units of window.lua, shares in millionths.
--
-- KEYS[1]  the node, a hash: `state`, below; `cuts`, as blame.lua has it; `report`, the node's last report as the caller packed
--          it; and `by`, per resource 8 bytes: the caller that the last calibration was made for, so that it learns of it where the
--          answer is lost
-- ARGV[1]  per resource (cpu, memory, network) 109 bytes: the rule (1 byte: 0 fixed, 1 aimd, 2 double-halve, 3 blame), the
--          interval (5 bytes), soft limit, backoff factor and pressure (4 bytes each; 2^32-1: not told), whether there was
--          an OOM kill (1), and per kind (repo, user, ip) min, initial, max, step and what the heaviest account used (6
--          bytes each; 2^48-1: not told)
-- ARGV[2]  the report
-- ARGV[3]  how long the node is remembered, in milliseconds
-- ARGV[4]  the caller, 8 bytes
-- ARGV[5]  who uses what, as blame.lua has it
--
-- state, little-endian (layout q1, version 1): version (1 byte), when the node last reported (7 bytes), and per resource
-- 78 bytes: whether it is adapted (1); when the interval began and when pressure was last told (7 each); pressure times
-- time, and the time it covers (7 each); whether an OOM kill is not counted yet (1); the limits of repo, user and ip (6
-- each); the last calibration: when (7), the reason (1: 0 none, 1 hot, 2 oom_kill, 3 calm, 4 steady, 5 silent), the mean
-- pressure (4), the limits before it (6 each).
--
-- Returns { seconds, microseconds, state, calibrated, rebased, repaired, cuts }: the clock, the new state, for each resource
-- whether its limits were calibrated (bits 1, 2, 4), how many a clock stepped back had dated in the future, and whether
-- what was stored could not be read (1) and began anew.

local PARAMETERS, HEAD, BLOCK, CALLER = 109, 8, 78, 8
local BLOCK_FORMAT = '<BI7I7I7I7BI6I6I6I7BI4I6I6I6'
local FIXED, AIMD, DOUBLE_HALVE, BLAME = 0, 1, 2, 3
local HOT, OOM_KILL, CALM, STEADY, SILENT = 1, 2, 3, 4, 5
local SILENT_INTERVALS, TOLERANCE, UNTOLD = 3, 5e6, 2 ^ 48 - 1

if #KEYS ~= 1 or #ARGV ~= 5 or #ARGV[1] ~= 3 * PARAMETERS or not tonumber(ARGV[3]) or #ARGV[4] ~= CALLER then
  return redis.error_reply('ERR calibrate takes a node, 327 bytes of parameters, a report, a time to live, a caller and a load')
end
local key = KEYS[1]
local time = redis.call('TIME')
local seconds, micros = tonumber(time[1]), tonumber(time[2])
local clock = seconds * 1e6 + micros

-- What is known and asked of a resource.
local function parameters(index)
  local p, at = { kinds = {} }, index * PARAMETERS + 1
  p.rule, p.interval, p.soft, p.factor, p.pressure, p.killed = unpack_struct('<BI5I4I4I4B', ARGV[1], at)
  for kind = 1, 3 do
    local least, initial, most, step, heaviest = unpack_struct('<I6I6I6I6I6', ARGV[1], at + 19 + 30 * (kind - 1))
    p.kinds[kind] = { min = least, initial = initial, max = most, step = step, heaviest = heaviest }
  end
  p.told = p.pressure < 2 ^ 32 - 1
  return p
end

local function fresh(p)
  return {
    since = clock, seen = clock, area = 0, span = 0, killed = 0,
    limits = { p.kinds[1].initial, p.kinds[2].initial, p.kinds[3].initial },
    at = 0, reason = 0, mean = 0, old = { 0, 0, 0 },
  }
end

-- The controller of a resource, or nil where there is none.
local function read(state, index)
  local adapted, since, seen, area, span, killed, l1, l2, l3, at, reason, mean, o1, o2, o3 =
    unpack_struct(BLOCK_FORMAT, state, HEAD + index * BLOCK + 1)
  if adapted == 0 or reason > SILENT then return nil end
  return {
    since = since, seen = seen, area = area, span = span, killed = killed, limits = { l1, l2, l3 },
    at = at, reason = reason, mean = mean, old = { o1, o2, o3 },
  }
end

local function write(c)
  if not c then return string.rep('\0', BLOCK) end
  local l, o = c.limits, c.old
  return pack(
    BLOCK_FORMAT, 1, c.since, c.seen, c.area, c.span, c.killed, l[1], l[2], l[3],
    c.at, c.reason, c.mean, o[1], o[2], o[3]
  )
end

local function start_interval(c, at)
  c.since, c.area, c.span, c.killed = at, 0, 0, 0
end

local function clamp(limit, kind)
  return max(min(limit, kind.max), kind.min)
end

-- Begins anew after `silent` intervals without a word: limits have taken a step towards initial in each after the third.
local function resume(c, cuts, p, now, silent)
  local old, steps = c.limits, silent - SILENT_INTERVALS
  c.limits = {}
  for i, kind in ipairs(p.kinds) do
    local limit, by = clamp(old[i], kind), steps * kind.step
    c.limits[i] = limit < kind.initial and min(limit + by, kind.initial) or max(limit - by, kind.initial)
  end
  raise_cuts(cuts, p, steps)
  start_interval(c, now)
  c.seen, c.killed = now, p.killed
  if steps > 0 then c.at, c.reason, c.mean, c.old = now, SILENT, 0, old end
  return steps > 0
end

local function is_due(c, p, now)
  local ended, ago = now - c.since >= p.interval, max(now - c.at, 0)
  if c.reason == 0 then return ended or c.killed == 1 end
  local cut = c.reason == HOT or c.reason == OOM_KILL
  return ended and ago >= p.interval - floor(p.interval / 8) or c.killed == 1 and (not cut or ago >= p.interval)
end

-- What the mean pressure calls for.
local function judge(p, mean)
  if p.rule == AIMD or p.rule == BLAME then return mean >= p.soft and HOT or CALM end
  return mean > 800000 and HOT or mean < 500000 and CALM or STEADY
end

local function move(limit, kind, reason, p, blamed)
  local cut = reason == HOT or reason == OOM_KILL
  if blamed then
    return limit + kind.step
  elseif cut and p.rule == AIMD then
    return share(limit, p.factor)
  elseif cut and p.rule == BLAME then
    return share(kind.heaviest == UNTOLD and limit or min(kind.heaviest, limit), p.factor)
  elseif cut then
    return floor(limit / 2)
  elseif reason == CALM and p.rule == AIMD then
    local far_below = kind.heaviest ~= UNTOLD and kind.heaviest < math.ceil(limit / 2)
    return far_below and limit or limit + kind.step
  elseif reason == CALM and p.rule == BLAME then
    return limit + kind.step
  elseif reason == CALM then
    return limit * 2
  end
  return limit
end

-- Cuts and raises single accounts where the rule does. Returns whether it did, by what the node tells.
local function blame(c, cuts, load, p, now)
  if p.rule ~= BLAME then
    cuts.mean, cuts.levels, cuts.accounts = 0, { 0, 0, 0 }, {}
  elseif load then
    local hot = c.reason == HOT or c.reason == OOM_KILL
    step_cuts(cuts, load, p, c.mean, hot, c.reason == OOM_KILL, now)
  else
    raise_cuts(cuts, p, 1)
  end
  return p.rule == BLAME and load ~= nil
end

local function calibrate(c, cuts, load, p, now)
  c.mean = c.span > 0 and min(floor(c.area / c.span), 1e6) or 0
  c.reason = c.killed == 1 and OOM_KILL or judge(p, c.mean)
  local blamed = blame(c, cuts, load, p, now)
  c.old, c.limits = c.limits, {}
  for i, kind in ipairs(p.kinds) do
    c.limits[i] = clamp(move(c.old[i], kind, c.reason, p, blamed), kind)
  end
  local ended = now - c.since >= p.interval
  start_interval(c, ended and max(now - p.interval, c.since + p.interval) or now)
  c.at = now
end

-- Takes in what is told of a resource. Returns whether its limits were calibrated, and whether it was dated anew.
local function observe(c, cuts, load, p)
  local rebased = c.seen - clock > TOLERANCE
  if rebased then
    start_interval(c, clock)
    c.seen, c.at = clock, min(c.at, clock)
    for _, cut in pairs(cuts.accounts) do cut.since = min(cut.since, clock) end
  end
  local now = max(clock, c.seen)
  local passed = now - c.seen
  local silent = floor(passed / p.interval)
  if silent >= SILENT_INTERVALS then return resume(c, cuts, p, now, silent), rebased end
  if p.told then
    local spanned = min(passed, p.interval)
    c.area, c.span = c.area + p.pressure * spanned, c.span + spanned
  end
  c.seen, c.killed = now, max(c.killed, p.killed)
  local due = is_due(c, p, now)
  if due then calibrate(c, cuts, load, p, now) end
  return due, rebased
end

local asked = { parameters(0), parameters(1), parameters(2) }
for _, p in ipairs(asked) do
  if p.rule > BLAME or p.rule ~= FIXED and p.interval == 0 then
    return redis.error_reply('ERR no such rule, or no interval')
  end
end
local stored, repaired = redis.pcall('HMGET', key, 'state', 'by', 'cuts'), 0
if stored.err then
  if not string.find(stored.err, 'WRONGTYPE', 1, true) then return stored end
  call('DEL', key)
  stored, repaired = {}, 1
end
local state, by = stored[1], stored[2]
if state and (#state ~= HEAD + 3 * BLOCK or string.byte(state) ~= 1) then
  state, repaired = false, 1
end

if not by or #by ~= 3 * CALLER then by = string.rep('\0', 3 * CALLER) end
local cuts, unreadable = read_cuts(stored[3])
if unreadable then repaired = 1 end
local loads = read_load(ARGV[5])
local blocks, callers, calibrated, rebased = { pack('<BI7', 1, clock) }, {}, 0, 0
for index = 0, 2 do
  local p = asked[index + 1]
  -- What this caller does not adapt is left alone: another may.
  local c, caller = state and read(state, index), sub(by, index * CALLER + 1, (index + 1) * CALLER)
  if p.rule ~= FIXED and (p.told or p.killed == 1) then
    if not c then c, cuts[index + 1] = fresh(p), nobody_cut() end
    local due, dated = observe(c, cuts[index + 1], loads[index + 1], p)
    if due then calibrated, caller = calibrated + 2 ^ index, ARGV[4] end
    if dated then rebased = rebased + 1 end
  end
  blocks[index + 2], callers[index + 1] = write(c), caller
end
state, cuts = table.concat(blocks), write_cuts(cuts)
call('HSET', key, 'state', state, 'cuts', cuts, 'report', ARGV[2], 'by', table.concat(callers))
call('PEXPIRE', key, ARGV[3])
return { seconds, micros, state, calibrated, rebased, repaired, cuts }
