/**
 * The script of `claim`, `settle`, `renew` and `exchange`: each is this one with some parts left out, so one digest serves
 * the whole of a worker's life.
 *
 * @module
 */
import { BASICS, HEAD, lazily, MOVES, REMEMBER_LEASE_MS } from "./common.ts";

/** See `Priority` in the port: every eighth delivery is a waiting level's own. */
const MOST_PASSED_OVER = 7;

/**
 * Settling a lease verdict by verdict: where not all of it is acked, or not all is open any more. Of a lease that is over the outcome is remembered. Its
 * answer is a letter a verdict, `d` done or `l` lost, or one capital for all.
 *
 * A verdict is its delivery's slot and a letter: `a` ack, `g` give back, `r` and milliseconds retry, `d` and how many attempts it
 * had (where the claim's is not one of them) dead, with the error and the job's id as two further arguments.
 */
const SETTLE_EACH = String.raw`
local function bury(record, id, why, had)
  local number, at, attempts, suspect, level, rest = read(record, id)
  local field = place(places(1))
  call('HSET', DEAD, field, whole(now) .. '|' .. why .. '\n' .. write(number, at, had or attempts + 1, suspect, level, rest))
  call('ZADD', DEAD_ORDER, tonumber(field), field)
  call('ZADD', DEAD_IDS, 0, string.match(rest, '^.|([^|]+)|') .. '|' .. field)
end

local function postpone(record, delay)
  local _, at, attempts, _, level, rest = read(record)
  local later = write(places(1), at, attempts + 1, '0', level, rest)
  if delay == 0 then
    call('RPUSH', ready(level), later)
  else
    call('ZADD', DELAYED, whole(now + delay), later)
  end
end

local function carry_out(record, verdict, why, id)
  local kind = string.match(verdict, '%a')
  if kind == 'g' then
    put_back({record}, false)
    news = true
  elseif kind == 'r' then
    postpone(record, tonumber(string.match(verdict, 'r(%d+)')))
  elseif kind == 'd' then
    bury(record, id, why, tonumber(string.match(verdict, 'd(%d+)')))
  end
end

local function settle_each(id, key, open, all, count)
  local verdicts, letters = {}, {}
  for i = 1, count do
    local verdict = arg()
    local why, job = '', nil
    if string.find(verdict, 'd', 1, true) then why, job = arg(), arg() end
    verdicts[i] = {tonumber(string.match(verdict, '^%d+')), verdict, why, job}
  end
  for slot = 1, all do verdicts[slot] = {slot, slot .. 'a'} end
  if type(open) == 'table' then
    local outcome = call('GET', key)
    for i, verdict in ipairs(verdicts) do
      local lost = outcome == '*' or string.sub(outcome, verdict[1], verdict[1]) == '1'
      letters[i] = lost and 'l' or 'd'
    end
    return table.concat(letters)
  end
  if not open then return 'L' end
  for _, verdict in ipairs(verdicts) do
    if string.find(verdict[2], '[grd]') then sound() end
  end
  begin_write()
  open = tonumber(open)
  for i, verdict in ipairs(verdicts) do
    local record = verdict[1] > 0 and call('LINDEX', key, verdict[1])
    if not record then
      letters[i] = 'l'
    else
      letters[i] = 'd'
      if record ~= SETTLED then
        call('LSET', key, verdict[1], SETTLED)
        open = open - 1
        carry_out(record, verdict[2], verdict[3], verdict[4])
      end
    end
  end
  if open == 0 then end_lease(id, key, '') else call('LSET', key, 0, whole(open)) end
  return table.concat(letters)
end
`;

/**
 * Settling the verdicts of one lease. Arguments: the lease's id; how many deliveries it had if all of them are acked, else 0; how many verdicts
 * follow; the verdicts. Mostly all are acked, and it is done with that.
 */
const SETTLE = `
local function settle()
  local id, all, count = arg(), tonumber(arg()), tonumber(arg())
  local key = lease_key(id)
  local open = try('LINDEX', key, 0)
  if tonumber(open) and tonumber(open) == all then
    end_lease(id, key, '')
    return 'D'
  end
  return rare().settle_each(id, key, open, all, count)
end
`;

/** Argument: the lease's id. Answers `h` held or `l` lost. */
const RENEW = `
local function renew(lease_ms)
  local id = arg()
  if not call('ZSCORE', LEASES, id) then return 'l' end
  call('ZADD', LEASES, now + lease_ms, id)
  return 'h'
end
`;

/**
 * What a claim needs where more is there than normal jobs that were never taken.
 *
 * - `plan`: how many each level gives. A waiting level is passed over by seven at most, counted over claims. One level that
 *   has all is the common case, with nobody to pass over.
 * - `in_sight`: in how many milliseconds more could come, for a copy of a claim: it moves nothing, and whoever sent it may sleep by its answer.
 */
const LEVELS = `
local function passed(normal, low)
  state[4], state[5] = normal, low
  call('HSET', QUEUE, 'passed:1', normal, 'passed:2', low)
end

local function plan(max, waiting)
  local give = {0, 0, 0}
  local normal, low = tonumber(state[4]) or 0, tonumber(state[5]) or 0
  local passed_before = normal + low
  local most = math.max(unpack(waiting))
  if most == 0 then return give end
  if most == waiting[1] + waiting[2] + waiting[3] then
    for level = 1, 3 do give[level] = math.min(max, waiting[level]) end
    normal, low = 0, 0
  else
    for _ = 1, max do
      local has_normal, has_low = waiting[2] > 0, waiting[3] > 0
      local level
      if has_normal and normal >= ${MOST_PASSED_OVER} then level = 2
      elseif has_low and low >= ${MOST_PASSED_OVER} then level = 3
      elseif waiting[1] > 0 then level = 1
      elseif has_normal then level = 2
      elseif has_low then level = 3
      else break end
      if not has_normal or level == 2 then normal = 0 elseif level == 1 then normal = normal + 1 end
      if not has_low or level == 3 then low = 0 else low = low + 1 end
      give[level] = give[level] + 1
      waiting[level] = waiting[level] - 1
    end
  end
  if normal + low + passed_before > 0 then passed(normal, low) end
  return give
end
local function pick(max)
  local waiting, returned = {0, 0, 0}, {0, 0, 0}
  for level = 0, 2 do waiting[level + 1] = call('LLEN', ready(level)) end
  if call('ZCARD', RETURNED) > 0 then
    for level = 0, 2 do
      local count = call('ZCOUNT', RETURNED, whole(level * SPAN), '(' .. whole((level + 1) * SPAN))
      returned[level + 1] = count
      waiting[level + 1] = waiting[level + 1] + count
    end
  end
  local give = plan(max, waiting)
  local picked, rank = {}, 0
  for level = 0, 2 do
    local count = give[level + 1]
    local again = math.min(count, returned[level + 1])
    if again > 0 then
      for _, record in ipairs(call('ZRANGE', RETURNED, rank, rank + again - 1)) do picked[#picked + 1] = record end
      call('ZREMRANGEBYRANK', RETURNED, rank, rank + again - 1)
    end
    rank = rank + returned[level + 1] - again
    if count > again then
      local list = call('LPOP', ready(level), count - again)
      if #picked == 0 then
        picked = list
      else
        for _, record in ipairs(list) do picked[#picked + 1] = record end
      end
    end
  end
  return picked
end
local function in_sight()
  if state[2] then return -1 end
  if call('EXISTS', INBOX, RETURNED, ready(0), ready(1), ready(2)) > 0 then return 0 end
  local next_due
  for _, key in ipairs({LEASES, DELAYED}) do
    local due = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    if due and (not next_due or due < next_due) then next_due = due end
  end
  return next_due and math.max(0, next_due - now) or -1
end
`;

/**
 * Claiming. Argument: the lease's id. Answers the records, settled ones of a repeated claim among them, and in how many
 * milliseconds more could come (-1: nothing in sight).
 *
 * - `take_back_lapsed`: the jobs of leases that ran out become suspects. Answers the next deadline, and how many jobs came back.
 * - `move_due`: answers when the next delayed job is due, and how many were moved.
 * - `pick_plain`: where nothing but normal jobs wait that were never taken.
 * - `fill`: a reply too large to arrive would be lost again and again, and its jobs with it; and all that a script takes into its
 *   hands takes time. So no more are picked at once than would fit if each were the largest, at least one; the one that is
 *   beyond the limit goes back to its place, and its level keeps its turn. One job always comes. Answers the jobs, and whether some went back.
 *   One that is larger than any that a request brings becomes a dead letter: its claim's answer would never arrive, and it would stand before all
 *   others for ever. Only another producer's can be.
 * - `claim`: mostly it is new, and nothing waits but normal jobs that were never taken: one command says so (`plain`). A late
 *   copy of a claim that found nothing must take nothing: a mark sees to that. On a full Redis it cannot be kept, and need not
 *   stop the claim.
 */
const CLAIM = `
local function take_back_lapsed(limit)
  local taken, bytes = 0, 0
  while true do
    local first = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')
    local deadline = tonumber(first[2])
    if not deadline or deadline > now or taken >= limit or bytes >= MOST_MOVED then return deadline, taken end
    local jobs, size = rare().take_back(first[1], true)
    taken, bytes = taken + jobs, bytes + size
  end
end

local function pick_plain(max)
  local picked = call('LPOP', ready(1), max)
  if not picked then return {} end
  if (tonumber(state[4]) or 0) + (tonumber(state[5]) or 0) > 0 then rare().passed(0, 0) end
  return picked
end

local function move_due(limit)
  local due, bytes, next_due = {}, 0, nil
  while true do
    local first = call('ZRANGE', DELAYED, #due, #due, 'WITHSCORES')
    next_due = tonumber(first[2])
    if not next_due or next_due > now or #due >= limit or bytes >= MOST_MOVED then break end
    due[#due + 1] = first[1]
    bytes = bytes + #first[1]
  end
  if #due > 0 then
    rare().sound()
    call('ZREMRANGEBYRANK', DELAYED, 0, #due - 1)
    rare().append(due)
  end
  return next_due, #due
end
local function fill(pick_some, max, most_bytes, most_record)
  local picked, bytes = {}, 0
  if largest > most_record then rare().sound() end
  while #picked < max do
    local most = math.min(max - #picked, math.max(1, math.floor((most_bytes - bytes) / largest)))
    local normal, low = state[4], state[5]
    local some = pick_some(most)
    if most == max then
      local size = 0
      for i = 1, #some do size = size + #some[i] end
      if size <= most_bytes and size <= most_record then return some, false end
    end
    for i, record in ipairs(some) do
      if #record > most_record then
        local _, _, attempts = rare().read(record)
        rare().bury(record, nil, '"The job has ' .. #record .. ' bytes, more than a request brings (' .. whole(most_record) .. '); raise maxRequestBytes to have it"', attempts)
      else
        bytes = bytes + #record
        if bytes > most_bytes and #picked > 0 then
          rare().put_back({unpack(some, i)}, false)
          if state[4] ~= normal or state[5] ~= low then rare().passed(normal or 0, low or 0) end
          return picked, true
        end
        picked[#picked + 1] = record
      end
    end
    if #some < most then break end
  end
  return picked, false
end

local function claim(max, lease_ms, most_bytes, most_record)
  local id = arg()
  local key = lease_key(id)
  local ends = now + lease_ms
  local plain = call('EXISTS', key, INBOX, RETURNED, ready(0), ready(2)) == 0
  if not plain then
    local held = try('LRANGE', key, 1, -1)
    if held.err then return {}, rare().in_sight() end
    if #held > 0 then
      rare().begin_write()
      call('ZADD', LEASES, ends, id)
      return held, rare().in_sight()
    end
  end
  local picked, deadline, delayed, more = {}, nil, nil, false
  if not state[2] then
    local moves, taken, due = math.max(max, 100), 0, 0
    if not plain then more = rare().move_inbox(moves, MOST_MOVED) end
    deadline, taken = take_back_lapsed(moves)
    delayed, due = move_due(moves)
    local went_back
    picked, went_back = fill(plain and taken + due == 0 and pick_plain or rare().pick, max, most_bytes, most_record)
    more = more or went_back
  end
  local count = #picked
  if count == 0 then
    try('SET', key, '*', 'PX', ${REMEMBER_LEASE_MS})
  else
    call('RPUSH', key, count, unpack(picked))
    call('ZADD', LEASES, ends, id)
  end
  if count == max or state[2] then return picked, -1 end
  if more then return picked, 0 end
  local next_due = count > 0 and now + lease_ms or nil
  if deadline and (not next_due or deadline < next_due) then next_due = deadline end
  if delayed and (not next_due or delayed < next_due) then next_due = delayed end
  return picked, next_due and math.max(0, next_due - now) or -1
end
`;

/**
 * Arguments: generation; lease in milliseconds; `=` and the memo to remember, or `''`; how many leases to settle; each; how many
 * to renew; each; `1` to read the memo; `1` to read what the guard needs; how many to claim, 0 for none; the lease's id; at
 * most how many bytes of records; and of one.
 *
 * Answer: `ok`, the letters of each settled lease, those of the renewals, the memo (`=` and text, or `''`), the two sections of INFO,
 * the milliseconds to the next, the records.
 */
export const EXCHANGE = `${HEAD}${lazily(BASICS + MOVES + SETTLE_EACH + RENEW + LEVELS)}${SETTLE}${CLAIM}
local lease_ms, remember = tonumber(arg()), arg()
local settled = {}
for i = 1, tonumber(arg()) do settled[i] = settle() end
local renewals = tonumber(arg())
if renewals > 0 then rare().begin_write() end
local renewed = {}
for i = 1, renewals do renewed[i] = rare().renew(lease_ms) end
if remember ~= '' then
  rare().begin_write()
  state[3] = string.sub(remember, 2)
  call('HSET', QUEUE, 'memo', state[3])
end
local recall, verify = arg() == '1', arg() == '1'
local memo, stats, memory = '', '', ''
if recall and state[3] then memo = '=' .. state[3] end
if verify then
  stats, memory = try('INFO', 'stats'), try('INFO', 'memory')
  if type(stats) == 'table' then stats = '' end
  if type(memory) == 'table' then memory = '' end
end
local max = tonumber(arg())
local records, next_due = {}, -1
if max > 0 then records, next_due = claim(max, lease_ms, tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])) end
if news then call('PUBLISH', PREFIX .. 'wake', '1') end
return {'ok', settled, table.concat(renewed), memo, stats, memory, next_due, records}
`;
