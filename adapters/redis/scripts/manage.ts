/**
 * The scripts of everything beside the work itself.
 *
 * @module
 */
import { DENIED } from "../failure.ts";
import { PING } from "../watch.ts";
import { COMMON, MOST_MOVED_BYTES, MOVES, REMEMBER_LEASE_MS } from "./common.ts";

/** Somebody looks at these, once, so it may be more than a claim moves. */
const MOST_PEEKED_INBOX_BYTES = 4 * MOST_MOVED_BYTES;
/** So many times more may be looked at where bodies stay where they are. */
const HEADS_BYTES = 8;
/** A redrive only copies, so it may move more at once as well. */
const MOST_REDRIVEN_BYTES = 16 * MOST_MOVED_BYTES;

/**
 * Opens the queue: founds its generation where there is none. Arguments: generation; the one to found. Answer: `ok`, the
 * generation, two sections of INFO, each `''` where a script may not read it, the memo or `''`, the section `persistence`, and what the user may not
 * do, `''` where nothing is missing.
 *
 * Redis undoes nothing of a script that is denied a command in its middle: so a claim could take jobs out of a list and put them nowhere. Each command
 * is tried here, in a way that changes nothing: on a hash which is there those of other types fail, and some keys are none.
 */
export const OPEN = `${COMMON}
local founding = arg()
if not state[1] then
  call('HSET', QUEUE, 'generation', founding)
  state[1] = founding
end
local stats, memory = try('INFO', 'stats'), try('INFO', 'memory')
if type(stats) == 'table' then stats = '' end
if type(memory) == 'table' then memory = '' end
local persistence = try('INFO', 'persistence')
if type(persistence) == 'table' then persistence = '' end
local denied = {}
local function may(command, ...)
  local answer = try(command, ...)
  if type(answer) == 'table' and string.find(answer.err or '', "${DENIED}", 1, true) then
    denied[#denied + 1] = command == 'PUBLISH' and command .. ' to ' .. (...) or command
  end
end
local none = PREFIX .. 'none'
may('HSET', QUEUE, 'generation', state[1])
may('HDEL', QUEUE, none)
may('HINCRBY', QUEUE, 'place', 0)
for _, command in ipairs({'HGET', 'ZSCORE', 'RPUSH', 'ZREM'}) do may(command, QUEUE, none) end
for _, command in ipairs({'HLEN', 'LLEN', 'ZCARD', 'LPOP', 'GET', 'PERSIST'}) do may(command, QUEUE) end
for _, command in ipairs({'LRANGE', 'ZRANGE', 'ZREMRANGEBYRANK', 'ZREMRANGEBYSCORE', 'ZRANGEBYSCORE', 'ZCOUNT'}) do may(command, QUEUE, 0, 0) end
may('ZRANGEBYLEX', QUEUE, '-', '+')
may('LINDEX', QUEUE, 0)
may('LSET', QUEUE, 0, '')
may('ZADD', QUEUE, 0, none)
may('SET', QUEUE, '', 'NX')
may('EXISTS', lease_key(none))
may('PEXPIRE', PREFIX .. 'request:' .. none, 1)
may('DEL', PREFIX .. 'part:' .. none)
may('UNLINK', PREFIX .. 'id:' .. none)
may('PUBLISH', PREFIX .. 'wake', '${PING}')
return {'ok', state[1], stats, memory, state[3] or '', persistence, table.concat(denied, ', ')}
`;

/** Gives back what is held under leases and ends them. Arguments: generation; the leases' ids. Answer: `ok`. */
export const ABANDON = `${COMMON}${MOVES}
begin_write()
for i = cursor + 1, #ARGV do
  local key = lease_key(ARGV[i])
  local open = try('LINDEX', key, 0)
  if not open then
    call('SET', key, '*', 'PX', ${REMEMBER_LEASE_MS})
  elseif type(open) == 'string' then
    take_back(ARGV[i], false)
    news = true
  end
end
if news then call('PUBLISH', PREFIX .. 'wake', '1') end
return {'ok'}
`;

/** Answer: `ok`, then ready, delayed, held, dead, and whether it is paused (1 or 0). */
export const SIZES = `${COMMON}
local due = call('ZCOUNT', DELAYED, '-inf', whole(now))
local count = due + call('ZCARD', RETURNED) + call('LLEN', INBOX)
for level = 0, 2 do count = count + call('LLEN', ready(level)) end
local held = 0
for _, id in ipairs(call('ZRANGE', LEASES, 0, -1)) do held = held + (tonumber(call('LINDEX', lease_key(id), 0)) or 0) end
return {'ok', count, call('ZCARD', DELAYED) - due, held, call('HLEN', DEAD), state[2] and 1 or 0}
`;

/**
 * Arguments: generation; state; limit; how many to pass over; about how many bytes at most; `1` to bring bodies. Answer: `ok`, the records, how many
 * were looked at, and `1` where more are behind them: somebody may look at thousands of jobs, each as large as a job may be. Of delayed ones each is
 * followed by its due time, of dead ones each is preceded by a line of its time and its error.
 *
 * What came due is shown behind the ready jobs of its level, where the next claim will put it. What lies in the inbox is moved among
 * them first, up to some bytes: only then has it an id.
 *
 * - `look`: at records out of one place, in their order; no more at once than would fit if each were the largest.
 */
export const PEEK = String.raw`${COMMON}${MOVES}
local where, limit, skip, most_bytes, with_bodies = arg(), tonumber(arg()), tonumber(arg()), tonumber(arg()), arg() == '1'
local found, shown, seen, bytes, more = {}, 0, 0, 0, 0
local head = where == 'dead' and '^[^\n]*\n[^\n]*\n' or '^[^\n]*\n'
if not with_bodies then most_bytes = most_bytes * ${HEADS_BYTES} end
local function look(count, fetch, width)
  local from = math.min(skip, count)
  skip = skip - from
  while from < count and shown < limit and (seen == 0 or bytes < most_bytes) do
    local most = math.max(1, math.floor((most_bytes - bytes) / largest))
    local some = fetch(from, math.min(most, count - from, limit - shown))
    if #some == 0 then return end
    for i = 1, #some, width do
      local record = some[i]
      from, seen, bytes = from + 1, seen + 1, bytes + #record
      if record ~= SETTLED then
        shown = shown + 1
        found[#found + 1] = with_bodies and record or string.match(record, head) or ''
        if width == 2 then found[#found + 1] = some[i + 1] end
      end
    end
  end
  if from < count then more = 1 end
end
if where == 'ready' then
  if skip == 0 then move_inbox(limit, ${MOST_PEEKED_INBOX_BYTES}) end
  local due = {{}, {}, {}}
  for _, record in ipairs(call('ZRANGEBYSCORE', DELAYED, '-inf', whole(now), 'LIMIT', 0, skip + limit)) do
    local _, _, _, _, level = read(record)
    table.insert(due[level + 1], record)
  end
  for level = 0, 2 do
    local from, to = whole(level * SPAN), '(' .. whole((level + 1) * SPAN)
    look(call('ZCOUNT', RETURNED, from, to), function(at, n) return call('ZRANGEBYSCORE', RETURNED, from, to, 'LIMIT', at, n) end, 1)
    look(call('LLEN', ready(level)), function(at, n) return call('LRANGE', ready(level), at, at + n - 1) end, 1)
    look(#due[level + 1], function(at, n) return {unpack(due[level + 1], at + 1, at + n)} end, 1)
  end
elseif where == 'delayed' then
  local from = '(' .. whole(now)
  look(call('ZCOUNT', DELAYED, from, '+inf'), function(at, n) return call('ZRANGEBYSCORE', DELAYED, from, '+inf', 'WITHSCORES', 'LIMIT', at, n) end, 2)
elseif where == 'held' then
  for _, id in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local key = lease_key(id)
    look(math.max(0, call('LLEN', key) - 1), function(at, n) return call('LRANGE', key, at + 1, at + n) end, 1)
    if more == 1 then break end
  end
else
  look(call('ZCARD', DEAD_ORDER), function(at, n)
    local some = call('ZRANGE', DEAD_ORDER, at, at + n - 1)
    for i, field in ipairs(some) do some[i] = call('HGET', DEAD, field) or '' end
    return some
  end, 1)
end
return {'ok', found, seen, more}
`;

/** Arguments: generation; the states. Answer: `ok` and how many were removed. */
export const CLEAR = `${COMMON}
local removed = 0
for i = cursor + 1, #ARGV do
  if ARGV[i] == 'ready' then
    removed = removed + call('ZCARD', RETURNED) + call('LLEN', INBOX)
    for level = 0, 2 do removed = removed + call('LLEN', ready(level)) end
    call('UNLINK', ready(0), ready(1), ready(2), RETURNED, INBOX)
    removed = removed + call('ZREMRANGEBYSCORE', DELAYED, '-inf', whole(now))
  elseif ARGV[i] == 'delayed' then
    removed = removed + call('ZREMRANGEBYSCORE', DELAYED, '(' .. whole(now), '+inf')
  elseif ARGV[i] == 'dead' then
    removed = removed + call('HLEN', DEAD)
    call('UNLINK', DEAD, DEAD_ORDER, DEAD_IDS)
  end
end
return {'ok', removed}
`;

/**
 * Puts dead letters back as ready jobs, oldest first. Arguments: generation; at most how many; the ids, none for all. Answer: `ok`, how
 * many, and `1` where it stopped before, at a number of bytes. An id that was given twice names its letters once.
 */
export const REDRIVE = String.raw`${COMMON}${MOVES}
local limit = tonumber(arg())
local fields = {}
if cursor == #ARGV then
  fields = call('ZRANGE', DEAD_ORDER, 0, limit - 1)
else
  for i = cursor + 1, #ARGV do
    for _, member in ipairs(call('ZRANGEBYLEX', DEAD_IDS, '[' .. ARGV[i] .. '|', '(' .. ARGV[i] .. '}')) do
      fields[#fields + 1] = string.match(member, '%d+$')
    end
  end
  table.sort(fields)
  for i = #fields, 2, -1 do
    if fields[i] == fields[i - 1] then table.remove(fields, i) end
  end
end
local records, members = {}, {}
sound()
begin_write()
local wanted, bytes = math.min(limit, #fields), 0
for i = 1, wanted do
  if bytes >= ${MOST_REDRIVEN_BYTES} then break end
  local record = call('HGET', DEAD, fields[i])
  bytes = bytes + #record
  local number, at, _, _, level, rest = read(string.sub(record, string.find(record, '\n', 1, true) + 1))
  records[i] = write(number, at, 0, '0', level, rest)
  members[i] = string.match(rest, '^.|([^|]+)|') .. '|' .. fields[i]
end
if #records > 0 then
  append(records)
  local gone = {unpack(fields, 1, #records)}
  send('HDEL', DEAD, gone)
  send('ZREM', DEAD_ORDER, gone)
  send('ZREM', DEAD_IDS, members)
  call('PUBLISH', PREFIX .. 'wake', '1')
end
return {'ok', #records, #records < wanted and 1 or 0}
`;

/** Arguments: generation; `1` to pause, `0` to go on. Answer: `ok`. */
export const PAUSE = `${COMMON}
if arg() == '1' then
  begin_write()
  call('HSET', QUEUE, 'paused', '1')
else
  call('HDEL', QUEUE, 'paused')
  call('PUBLISH', PREFIX .. 'wake', '1')
end
return {'ok'}
`;
