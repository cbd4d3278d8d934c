-- Ends a reservation; one that is unknown, ended or past its lease changes nothing.
-- KEYS: as in reserve.lua. ARGV: mode, id, tokens, micro_usd.
-- Modes: settle (real figures in its place), release (all of it back), charge (figures of a
--   call that was granted elsewhere while this store was down; sent twice it counts twice).
local SLOT_MS, DAY_MS, KEEP_MS, MARK_MS = 1000, 86400000, 172800000, 60000
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local text = function(n) return string.format('%.0f', n) end

local function add(key, field, amount)
  -- A refund for a second that has left the window goes nowhere.
  local value = (tonumber(redis.call('HGET', key, field)) or 0) + amount
  if value > 0 then redis.call('HSET', key, field, text(value)) else redis.call('HDEL', key, field) end
end

for i = 1, #KEYS do
  local key, field = KEYS[i], 'h' .. ARGV[2]
  local tokens, money = tonumber(ARGV[3]), tonumber(ARGV[4])
  local held = redis.call('HGET', key, field)
  if ARGV[1] == 'charge' then
    local slot = text(math.floor(now / SLOT_MS))
    add(key, 'r' .. slot, 1)
    add(key, 't' .. slot, tokens)
    add(key, 'm' .. text(math.floor(now / DAY_MS)), money)
    redis.call('PEXPIRE', key, KEEP_MS)
  elseif held then
    local slot, old_tokens, old_money, expires = held:match('^(%d+):(%d+):(%d+):(%d+)$')
    redis.call('HDEL', key, field)
    if tonumber(expires) > now then
      if ARGV[1] == 'release' then add(key, 'r' .. slot, -1) end
      add(key, 't' .. slot, tokens - tonumber(old_tokens))
      local day = math.floor(tonumber(slot) * SLOT_MS / DAY_MS)
      add(key, 'm' .. text(day), money - tonumber(old_money))
    end
  elseif ARGV[1] == 'release' then
    -- It may have overtaken its own reservation, on another connection.
    redis.call('HSET', key, 'x' .. ARGV[2], text(now + MARK_MS))
    redis.call('PEXPIRE', key, KEEP_MS)
  end
end
return 1
