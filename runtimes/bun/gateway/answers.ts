/**
 * From Redis replies to HTTP answers in Upstash's form.
 *
 * @module
 */
import { type Reply, ReplyError } from "./resp.ts";

const JSON_200: ResponseInit = { status: 200, headers: { "content-type": "application/json" } };
const JSON_400: ResponseInit = { status: 400, headers: { "content-type": "application/json" } };

/** The answer to one command: 200 with its result, or 400 with the error. */
export function answerOne(reply: Reply): Response {
  if (reply instanceof ReplyError) return new Response(entry(reply), JSON_400);
  return new Response(entry(reply), JSON_200);
}

/** The answer to several commands: 200 with a result or an error for each. */
export function answerMany(replies: readonly Reply[]): Response {
  return new Response(`[${replies.map(entry).join(",")}]`, JSON_200);
}

/** `{error}` under a status. */
export function answerError(status: number, error: string): Response {
  return Response.json({ error }, { status });
}

function entry(reply: Reply): string {
  if (reply instanceof ReplyError) return `{"error":${JSON.stringify(reply.message)}}`;
  return `{"result":${toJson(reply)}}`;
}

function toJson(reply: Reply): string {
  if (typeof reply === "string") return JSON.stringify(reply);
  if (typeof reply === "bigint") return reply.toString();
  if (Array.isArray(reply)) return plain(reply) ? JSON.stringify(reply) : `[${reply.map(toJson).join(",")}]`;
  if (reply instanceof ReplyError) return JSON.stringify(reply.message);
  return reply === null ? "null" : String(reply);
}

/** Whether `JSON.stringify` writes the whole of it right, which is by far the fastest way. */
function plain(reply: readonly Reply[]): boolean {
  for (const item of reply) {
    if (typeof item === "string" || typeof item === "number" || item === null) continue;
    if (Array.isArray(item) && plain(item)) continue;
    return false;
  }
  return true;
}
