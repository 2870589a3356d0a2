/**
 * The Lua that every script begins with: names, the clock, the guard, and what is done to one job's record.
 *
 * A record is one line of fields and the body:
 *
 * `place|enqueuedAt|attempts|suspect|level|encoding|id|headers⏎body`
 *
 * The place is the job's position in the queue's order, 12 digits at least, so that records sort by it. Level: 0 high, 1
 * normal, 2 low. Encoding: `t` text, `b` base64, `x` text with `%hh` for some bytes; a capital letter marks a record that was
 * malformed, with what could be saved as its body.
 *
 * @module
 */

/** How long an ended lease and its outcome are remembered, in milliseconds. The port asks for 60 seconds at least. */
export const REMEMBER_LEASE_MS = 60_000;

/**
 * Between levels in the set of returned jobs; larger than any place. Level and place together stay below 2^53, so a
 * score holds them exactly.
 */
const LEVEL_SPAN = 2 ** 50;

/**
 * At about so many bytes of jobs a script stops moving more of them from one place to another: looking at each byte of a megabyte takes
 * Redis tens of milliseconds, in which it serves nobody else.
 */
export const MOST_MOVED_BYTES = 262_144;

/** What stands in a lease's list for a delivery that is settled. No record begins with this byte. */
export const SETTLED = "\u0000settled";

/** The queue's keys by their names in the scripts: what follows the prefix. */
const NAMED_KEYS = {
  RETURNED: "returned",
  DELAYED: "delayed",
  LEASES: "leases",
  INBOX: "inbox",
  DEAD: "dead",
  DEAD_ORDER: "dead:order",
  DEAD_IDS: "dead:ids",
};

/** What follows the queue's prefix in each key that every queue has one of. */
export const KEY_NAMES: readonly string[] = [
  "queue",
  "ready:0",
  "ready:1",
  "ready:2",
  ...Object.values(NAMED_KEYS),
];

/** In Lua: one local of that name for each. */
const NAMING = `local ${Object.keys(NAMED_KEYS).join(", ")} = ${Object.values(NAMED_KEYS)
  .map((name) => `PREFIX .. '${name}'`)
  .join(", ")}`;

/**
 * `KEYS` of every script is the queue's hash alone: a call of a worker's would be half keys otherwise, read four times on its way. The others
 * share its hash tag, and so its place in a cluster. `ARGV[1]` of every script is the generation that the caller saw, or `''` when it saw none.
 *
 * What is said about the Lua is said here and not in it: its comments would be sent and bundled with it.
 *
 * - `end_lease`: the outcome says of each delivery whether it was settled (0) or lost (1); `''` when all were settled.
 * - `largest`: the size of the largest record that the queue ever had, by which a claim knows how many it may pick at once.
 */
export const HEAD = String.raw`
local call, try = redis.call, redis.pcall
local QUEUE = KEYS[1]
local PREFIX = string.sub(QUEUE, 1, -6)
${NAMING}
local SETTLED = '\0settled'
local SPAN = ${LEVEL_SPAN}
local MOST_MOVED = ${MOST_MOVED_BYTES}
local news = false

local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local state = call('HMGET', QUEUE, 'generation', 'paused', 'memo', 'passed:1', 'passed:2', 'largest', 'place')
if ARGV[1] ~= '' and state[1] ~= ARGV[1] then return {'vanished'} end
if state[7] and (#state[7] > 15 or not string.find(state[7], '^%d+$')) then return {err = 'WRONGTYPE of the counter of places'} end

local cursor = 1
local function arg()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function whole(number) return string.format('%.0f', number) end
local function ready(level) return PREFIX .. 'ready:' .. level end
local function lease_key(id) return PREFIX .. 'lease:' .. id end
local function end_lease(id, key, outcome)
  call('ZREM', LEASES, id)
  call('SET', key, outcome, 'PX', ${REMEMBER_LEASE_MS})
end
local largest = tonumber(state[6]) or 1
`;

/**
 * What is done to records, and to many of them.
 *
 * - `send`: Lua passes at most some 8,000 arguments; a command with more is sent in parts.
 * - `begin_write`: a full Redis refuses a script whose first write could grow it. Settling, renewing and claiming must go on
 *   there, or it never empties: so they begin with a write that cannot, and does nothing.
 * - `is_text`: one pass, which ends at the first byte that does not fit; ASCII is passed over by the run.
 * - `escapes`: from each byte that is escaped to what stands for it; made when it is first needed.
 * - `measure`: keeps `largest`.
 * - `adopt`: makes a record of bytes that are none.
 * - `read`: the fields of a record, and what follows them; of what is none, a record is made first.
 * - `sound`: Redis undoes nothing of a script that fails in its middle, and one fails at a key that holds another type than it should. Whatever
 *   moves jobs from one key to another looks at all of them before.
 */
export const BASICS = String.raw`
local function send(command, key, list)
  for first = 1, #list, 4000 do
    call(command, key, unpack(list, first, math.min(first + 3999, #list)))
  end
end

local function begin_write() call('PERSIST', LEASES) end

local function places(count) return call('HINCRBY', QUEUE, 'place', count) - count end
local function place(number) return string.format('%012.0f', number) end

local function is_text(bytes)
  local at, size = string.match(bytes, '^[%z\1-\127]*()'), #bytes
  while at <= size do
    local lead, rest = string.byte(bytes, at), nil
    if lead < 194 or lead > 244 then return false
    elseif lead < 224 then rest = '^[\128-\191][%z\1-\127]*()'
    elseif lead == 224 then rest = '^[\160-\191][\128-\191][%z\1-\127]*()'
    elseif lead == 237 then rest = '^[\128-\159][\128-\191][%z\1-\127]*()'
    elseif lead < 240 then rest = '^[\128-\191][\128-\191][%z\1-\127]*()'
    elseif lead == 240 then rest = '^[\144-\191][\128-\191][\128-\191][%z\1-\127]*()'
    elseif lead < 244 then rest = '^[\128-\191][\128-\191][\128-\191][%z\1-\127]*()'
    else rest = '^[\128-\143][\128-\191][\128-\191][%z\1-\127]*()' end
    at = string.match(bytes, rest, at + 1)
    if not at then return false end
  end
  return true
end

local escapes
local function escape(bytes)
  if not escapes then
    escapes = {['%'] = '%25'}
    for byte = 128, 255 do escapes[string.char(byte)] = string.format('%%%02x', byte) end
  end
  return (string.gsub(bytes, '[%%\128-\255]', escapes))
end

local function measure(record)
  if #record <= largest then return end
  largest = #record
  call('HSET', QUEUE, 'largest', largest)
end

local function adopt(bytes, number, id, malformed)
  local encoding = 't'
  if not is_text(bytes) then
    encoding = 'x'
    bytes = escape(bytes)
  end
  if malformed then encoding = string.upper(encoding) end
  local record = place(number) .. '|' .. whole(now) .. '|0|0|1|' .. encoding .. '|' .. id .. '|\n' .. bytes
  measure(record)
  return record
end

local function read(record, id)
  local number, at, attempts, suspect, level, rest = string.match(record, '^(%d+)|(%d+)|(%d+)|([01])|([012])|()[tbxTX]|[^|]+|')
  if not number then
    number = places(1)
    return read(adopt(record, number, id or ('malformed:' .. whole(now) .. ':' .. whole(number)), true))
  end
  return tonumber(number), at, tonumber(attempts), suspect, level, string.sub(record, rest)
end

local is_sound = false
local function sound()
  if is_sound then return end
  for _, key in ipairs({ready(0), ready(1), ready(2), INBOX}) do call('LLEN', key) end
  for _, key in ipairs({RETURNED, DELAYED, LEASES, DEAD_ORDER, DEAD_IDS}) do call('ZCARD', key) end
  call('HLEN', DEAD)
  is_sound = true
end

local function write(number, at, attempts, suspect, level, rest)
  return place(number) .. '|' .. at .. '|' .. whole(attempts) .. '|' .. suspect .. '|' .. level .. '|' .. rest
end
`;

/** Every script begins so. */
export const COMMON = `${HEAD}${BASICS}`;

/**
 * Functions that most calls of a script do without: `rare()` makes them all when the first is needed, and answers them by their names. Lua makes each
 * function anew in each call, which for forty of them takes as long as three commands.
 */
export function lazily(functions: string): string {
  const names = [...functions.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
  return `
local made
local function rare()
  if made then return made end
  ${functions}
  made = {${names.map((name) => `${name} = ${name}`).join(", ")}}
  return made
end
`;
}

/**
 * Moves between the places a job can be in. They stop at a number of jobs and at a number of bytes, so that none holds the
 * server up for long; one job always moves. What is left is the next claim's.
 *
 * - `put_back`: back to the place it had, before all that was never taken. Suspect or not, charged or not: as the caller says.
 * - `append`: behind all others of their levels, in this order.
 * - `move_inbox`: what other producers pushed becomes jobs. Answers whether some is left.
 * - `take_back`: ends a lease as it stands and gives back what it still holds. Answers how many jobs, and how many bytes. All is
 *   lost (`*`) where nothing was settled before, or where the list is gone though its deadline was there.
 */
export const MOVES = `
local function put_back(records, charge)
  local list = {}
  for _, record in ipairs(records) do
    local number, at, attempts, suspect, level, rest = read(record)
    if charge then attempts, suspect = attempts + 1, '1' end
    list[#list + 1] = whole(level * SPAN + number)
    list[#list + 1] = write(number, at, attempts, suspect, level, rest)
  end
  send('ZADD', RETURNED, list)
end
local function append(records)
  local number = places(#records)
  local lists = {['0'] = {}, ['1'] = {}, ['2'] = {}}
  for _, record in ipairs(records) do
    local _, at, attempts, suspect, level, rest = read(record)
    table.insert(lists[level], write(number, at, attempts, suspect, level, rest))
    number = number + 1
  end
  for level, list in pairs(lists) do send('RPUSH', ready(level), list) end
end
local function move_inbox(limit, most_bytes)
  local bodies, bytes = {}, 0
  call('LLEN', ready(1))
  while #bodies < limit and bytes < most_bytes do
    local body = call('LPOP', INBOX)
    if not body then break end
    bodies[#bodies + 1] = body
    bytes = bytes + #body
  end
  if #bodies == 0 then return false end
  local number = places(#bodies)
  for i, body in ipairs(bodies) do
    bodies[i] = adopt(body, number, 'inbox:' .. whole(now) .. ':' .. whole(number), false)
    number = number + 1
  end
  send('RPUSH', ready(1), bodies)
  return call('EXISTS', INBOX) == 1
end
local function take_back(id, charge)
  sound()
  local key = lease_key(id)
  local list = try('LRANGE', key, 1, -1)
  local records, outcome, bytes = {}, {}, 0
  for i, record in ipairs(list) do
    if record == SETTLED then
      outcome[i] = '0'
    else
      outcome[i] = '1'
      records[#records + 1] = record
      bytes = bytes + #record
    end
  end
  if #records == #outcome then outcome = {'*'} end
  end_lease(id, key, table.concat(outcome))
  put_back(records, charge)
  return #records, bytes
end
`;
