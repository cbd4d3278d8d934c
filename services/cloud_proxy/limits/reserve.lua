-- Takes a reservation from every scope or from none; policy/limits.py says how and why.
-- KEYS: one hash a scope, all of one tenant. Fields: r<second> requests, t<second> tokens,
--   m<day> micro USD, h<id> = "second:tokens:micro_usd:expires_at_ms", x<id> = when the mark
--   of a release that overtook its reservation may go.
-- ARGV: id, tokens, micro_usd, lease_ms, then for each scope requests/min, tokens/min,
--   concurrent, micro_usd/day; -1: no limit.
-- Returns {granted, which, retry_after_ms, remaining requests, tokens, micro_usd}; -1: none.
local SLOT_MS, SLOTS, DAY_MS, BUSY_MS, KEEP_MS = 1000, 60, 86400000, 1000, 172800000
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local slot, day = math.floor(now / SLOT_MS), math.floor(now / DAY_MS)
local want = {r = 1, t = tonumber(ARGV[2]), m = tonumber(ARGV[3])}
local lease = tonumber(ARGV[4])
local text = function(n) return string.format('%.0f', n) end

local function load(key)
  local usage = {r = {}, t = {}, sum = {r = 0, t = 0}, money = 0, open = 0, open_money = 0}
  local stale, all = {}, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local name, value = all[i], all[i + 1]
    local kind, rest = name:sub(1, 1), name:sub(2)
    if kind == 'h' then
      local money, expires = value:match('^%d+:%d+:(%d+):(%d+)$')
      if tonumber(expires) > now then
        usage.open, usage.open_money = usage.open + 1, usage.open_money + tonumber(money)
      else
        stale[#stale + 1] = name
      end
    elseif kind == 'x' then
      if rest == ARGV[1] then usage.left = true end
      if tonumber(value) <= now then stale[#stale + 1] = name end
    elseif kind == 'm' then
      if tonumber(rest) == day then usage.money = tonumber(value) end
      if tonumber(rest) < day - 1 then stale[#stale + 1] = name end
    elseif tonumber(rest) < slot - SLOTS then
      stale[#stale + 1] = name
    else
      usage[kind][#usage[kind] + 1] = {tonumber(rest), tonumber(value)}
      usage.sum[kind] = usage.sum[kind] + tonumber(value)
    end
  end
  for i = 1, #stale do redis.call('HDEL', key, stale[i]) end
  return usage
end

local function wait(slots, missing)
  table.sort(slots, function(a, b) return a[1] < b[1] end)
  for i = 1, #slots do
    missing = missing - slots[i][2]
    if missing <= 0 then return (slots[i][1] + SLOTS + 1) * SLOT_MS - now end
  end
  return -1
end

local which, retry = nil, 0
local function refuse(name, ms)
  -- The longest wait is told; one that never ends (-1) is the longest.
  if not which or (retry ~= -1 and (ms == -1 or ms > retry)) then which, retry = name, ms end
end

local usages, limits = {}, {}
for i = 1, #KEYS do
  local usage, at = load(KEYS[i]), 4 + (i - 1) * 4
  local limit = {r = tonumber(ARGV[at + 1]), t = tonumber(ARGV[at + 2]),
                 c = tonumber(ARGV[at + 3]), m = tonumber(ARGV[at + 4])}
  usages[i], limits[i] = usage, limit
  -- Its caller has left already: nobody would settle it.
  if usage.left then refuse('concurrency', BUSY_MS) end
  for _, pair in ipairs({{'r', 'requests'}, {'t', 'tokens'}}) do
    local kind = pair[1]
    local missing = usage.sum[kind] + want[kind] - limit[kind]
    if limit[kind] >= 0 and missing > 0 then refuse(pair[2], wait(usage[kind], missing)) end
  end
  if limit.c >= 0 and usage.open >= limit.c then
    refuse('concurrency', limit.c > 0 and BUSY_MS or -1)
  end
  local over = usage.money + want.m - limit.m
  if limit.m >= 0 and over > 0 then
    if want.m > limit.m then refuse('budget', -1)
    elseif over <= usage.open_money then refuse('budget', BUSY_MS)
    else refuse('budget', DAY_MS - now % DAY_MS) end
  end
end

if not which then
  local held = table.concat({text(slot), text(want.t), text(want.m), text(now + lease)}, ':')
  for i = 1, #KEYS do
    redis.call('HINCRBY', KEYS[i], 'r' .. text(slot), 1)
    if want.t > 0 then redis.call('HINCRBY', KEYS[i], 't' .. text(slot), text(want.t)) end
    if want.m > 0 then redis.call('HINCRBY', KEYS[i], 'm' .. text(day), text(want.m)) end
    redis.call('HSET', KEYS[i], 'h' .. ARGV[1], held)
    redis.call('PEXPIRE', KEYS[i], KEEP_MS)
  end
end

local left = {r = -1, t = -1, m = -1}
for i = 1, #KEYS do
  local used = {r = usages[i].sum.r, t = usages[i].sum.t, m = usages[i].money}
  for _, kind in ipairs({'r', 't', 'm'}) do
    if limits[i][kind] >= 0 then
      local free = math.max(0, limits[i][kind] - used[kind] - (which and 0 or want[kind]))
      if left[kind] == -1 or free < left[kind] then left[kind] = free end
    end
  end
end
return {which and 0 or 1, which or '', retry, left.r, left.t, left.m}
