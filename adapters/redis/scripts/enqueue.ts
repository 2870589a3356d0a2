import { COMMON } from "./common.ts";

/**
 * Keeps a part of an enqueue that is too large for one request, until {@linkcode ENQUEUE} takes it in. Sent again it replaces itself.
 *
 * Arguments: generation; request id; number of the part; milliseconds to keep it; pairs as of ENQUEUE. Answer: `ok`.
 */
export const STAGE = `${COMMON}
local key = PREFIX .. 'part:' .. arg() .. ':' .. arg()
local keep_ms = arg()
local items = {}
for i = cursor + 1, #ARGV do items[#items + 1] = ARGV[i] end
call('DEL', key)
send('RPUSH', key, items)
call('PEXPIRE', key, keep_ms)
return {'ok'}
`;

/**
 * Takes jobs in, all or none.
 *
 * Arguments: generation; the generation to found where there is none yet; request id; milliseconds of the dedupe window; number of
 * staged parts; then for each job a pair: its delay in milliseconds, with a `u` behind it when its id must be unique, and its record
 * without place and time.
 *
 * Answer: `ok`, the generation, and a digit for each job (1: a duplicate), or `''` when none is.
 */
export const ENQUEUE = `${COMMON}
local founding, request, window, parts = arg(), arg(), arg(), tonumber(arg())
local request_key = PREFIX .. 'request:' .. request
local function drop_parts()
  for part = 1, parts do call('UNLINK', PREFIX .. 'part:' .. request .. ':' .. part) end
end
local before = call('GET', request_key)
if before then
  drop_parts()
  return {'ok', state[1] or '', before}
end
for level = 0, 2 do call('LLEN', ready(level)) end
call('ZCARD', DELAYED)
if not state[1] then
  call('HSET', QUEUE, 'generation', founding)
  state[1] = founding
end

local jobs = {}
for part = 1, parts do
  local key = PREFIX .. 'part:' .. request .. ':' .. part
  local list = call('LRANGE', key, 0, -1)
  if #list == 0 then return {'incomplete'} end
  for _, item in ipairs(list) do jobs[#jobs + 1] = item end
end
for i = cursor + 1, #ARGV do jobs[#jobs + 1] = ARGV[i] end

local number = places(#jobs / 2)
local lists = {['0'] = {}, ['1'] = {}, ['2'] = {}}
local later, digits, duplicates = {}, {}, 0
local at = whole(now)
for i = 1, #jobs, 2 do
  local when, record = jobs[i], jobs[i + 1]
  local digit = '0'
  if string.sub(when, -1) == 'u' then
    when = string.sub(when, 1, -2)
    local id = string.match(record, '^0|0|.|.|([^|]+)|')
    if not call('SET', PREFIX .. 'id:' .. id, '1', 'NX', 'PX', window) then digit = '1' end
  end
  if digit == '1' then
    duplicates = duplicates + 1
  else
    local full = place(number) .. '|' .. at .. '|' .. record
    measure(full)
    if when == '0' then
      local list = lists[string.sub(record, 5, 5)]
      list[#list + 1] = full
    else
      later[#later + 1] = whole(now + when)
      later[#later + 1] = full
    end
    number = number + 1
  end
  digits[#digits + 1] = digit
end
for level, list in pairs(lists) do send('RPUSH', ready(level), list) end
send('ZADD', DELAYED, later)
drop_parts()
local answer = duplicates > 0 and table.concat(digits) or ''
call('SET', request_key, answer, 'PX', window)
if duplicates < #digits then call('PUBLISH', PREFIX .. 'wake', '1') end
return {'ok', state[1], answer}
`;
