/**
 * From what an HTTP request says to Redis commands, and which commands are refused.
 *
 * @module
 */
import type { Argument } from "./resp.ts";

/** A request that cannot be turned into commands: HTTP 400 with its text. Never quotes an argument. */
export class BadCommandError extends Error {
  override name = "BadCommandError";
}

/**
 * Commands that would block the connection that all requests share, change its state for the others, or end the
 * server. Upstash refuses the same ones, but for those it simply does not have.
 */
const REFUSED = new Set(
  (
    "BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP WAIT WAITAOF " +
    "SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR " +
    "MULTI EXEC DISCARD WATCH UNWATCH AUTH HELLO SELECT QUIT RESET READONLY READWRITE ASKING " +
    "SYNC PSYNC REPLCONF FAILOVER REPLICAOF SLAVEOF SHUTDOWN DEBUG"
  ).split(" "),
);
/** Of CLIENT, only what leaves the shared connection as it is. */
const CLIENT_ALLOWED = new Set(["ID", "INFO", "LIST", "GETNAME", "SETINFO", "GETREDIR"]);

/** No word that is refused is longer, in bytes. */
const LONGEST_WORD = 32;

/** Why a command is refused, in the words of a Redis error; `undefined` when it may pass. */
export function refusal(command: readonly Argument[]): string | undefined {
  const name = word(command[0]);
  const blocks =
    REFUSED.has(name) ||
    (name === "CLIENT" && !CLIENT_ALLOWED.has(word(command[1]))) ||
    (name === "SCRIPT" && word(command[1]) === "DEBUG") ||
    ((name === "XREAD" || name === "XREADGROUP") && hasBlock(command));
  return blocks ? `ERR Command is not available: '${name}'` : undefined;
}

/** An argument as Redis would take it for a word; a request's raw body may be one too. */
function word(argument: Argument | undefined): string {
  if (argument === undefined) return "";
  if (typeof argument === "string") return argument.toUpperCase();
  return argument.length <= LONGEST_WORD ? Buffer.from(argument).toString("latin1").toUpperCase() : "";
}

/** `BLOCK` among the options, which end at `STREAMS`: behind it stand keys, and a key may have that name. */
function hasBlock(command: readonly Argument[]): boolean {
  for (let at = 1; at < command.length; at++) {
    const option = word(command[at]);
    if (option === "BLOCK") return true;
    if (option === "STREAMS") return false;
    if (option === "GROUP") at += 2;
    if (option === "COUNT") at += 1;
  }
  return false;
}

/**
 * One command out of a JSON body.
 *
 * @throws {BadCommandError}
 */
export function readCommand(body: string): Argument[] {
  const parsed = parse(body);
  if (!hasUnsafeNumber(parsed)) return toCommand(parsed);
  return toCommand(parseExact(body));
}

/**
 * A list of commands out of a JSON body, for a pipeline or a transaction.
 *
 * @throws {BadCommandError}
 */
export function readCommands(body: string): Argument[][] {
  let parsed = parse(body);
  if (!Array.isArray(parsed) || parsed.length === 0) {
    throw new BadCommandError("ERR failed to parse pipeline request: a list of commands is expected");
  }
  if (parsed.some(hasUnsafeNumber)) parsed = parseExact(body);
  return (parsed as unknown[]).map(toCommand);
}

/**
 * A command out of a path, as in `/set/key/value?EX=100`: a request's body becomes the last argument of the path, and the
 * query's names and values follow it. `_token` is left out.
 *
 * @throws {BadCommandError}
 */
export function readPath(url: URL, body: Uint8Array | undefined): Argument[] {
  const command: Argument[] = [];
  for (const part of url.pathname.slice(1).split("/")) command.push(decodePart(part));
  if (body !== undefined && body.length > 0) command.push(body);
  for (const [name, value] of url.searchParams) {
    if (name === "_token") continue;
    command.push(name);
    if (value !== "") command.push(value);
  }
  return command;
}

/** @throws {BadCommandError} when a part of a path is not percent-encoded UTF-8. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new BadCommandError("ERR failed to parse command: the path is not percent-encoded UTF-8");
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new BadCommandError("ERR failed to parse command: the body is not JSON");
  }
}

/** Integers too long for a double would lose digits on their way to Redis; numbers are rare enough to look at each. */
function hasUnsafeNumber(command: unknown): boolean {
  if (!Array.isArray(command)) return false;
  for (const part of command) {
    if (typeof part === "number" && !Number.isSafeInteger(part)) return true;
  }
  return false;
}

/** Parses again, with each number as the text it was written as. */
function parseExact(body: string): unknown {
  const keepDigits = (_key: string, value: unknown, context: { source?: string }) =>
    typeof value === "number" ? (context.source ?? value) : value;
  try {
    return JSON.parse(body, keepDigits as (key: string, value: unknown) => unknown);
  } catch {
    // What goes through each value gives up on arrays within arrays that are thousands deep.
    throw new BadCommandError("ERR failed to parse command: the body is nested too deeply");
  }
}

function toCommand(parsed: unknown): Argument[] {
  if (!Array.isArray(parsed) || parsed.length === 0) {
    throw new BadCommandError("ERR failed to parse command: a list of a name and its arguments is expected");
  }
  for (let at = 0; at < parsed.length; at++) {
    const part: unknown = parsed[at];
    if (typeof part === "string") continue;
    if (typeof part === "number" || typeof part === "boolean") {
      parsed[at] = String(part);
      continue;
    }
    throw new BadCommandError(
      "ERR failed to parse command: an argument is neither string, number nor boolean",
    );
  }
  return parsed as string[];
}
