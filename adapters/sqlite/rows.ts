/** Reading rows of the tables as the port's jobs and deliveries. */
import type { Delivery, JobState, PeekedJob, Priority, RawBody } from "../../src/broker.ts";
import { isJobId } from "../../src/broker.ts";
import type { SqlRow, SqlValue } from "./driver.ts";

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"];

export function levelOf(priority: Priority): 0 | 1 | 2 {
  return priority === "high" ? 0 : priority === "normal" ? 1 : 2;
}

/**
 * A body as it is stored: a text as TEXT, bytes as BLOB. A text with a NUL goes as its bytes, since SQL functions and some
 * drivers end a text there; so does one with a lone surrogate, to be the same bytes whichever driver writes it.
 */
export function storedBody(body: RawBody): SqlValue {
  if (typeof body !== "string") return body;
  return body.includes("\0") || !body.isWellFormed() ? new TextEncoder().encode(body) : body;
}

export function storedHeaders(headers: Readonly<Record<string, string>>): string {
  for (const _ in headers) return JSON.stringify(headers);
  return "";
}

/** A held row as a delivery. What cannot be read of it is told in `broken`. */
export function deliveryOf(row: SqlRow, leaseId: string): Delivery {
  const headers = headersOf(row.headers);
  const id = String(row.id);
  const broken = !isJobId(id)
    ? "its stored id is not 1 to 200 printable ASCII characters without space and |"
    : headers === undefined
      ? "its stored headers are not a JSON object of texts"
      : undefined;
  return {
    id,
    leaseId,
    token: String(row.seq),
    attempt: Number(row.attempts),
    suspect: row.suspect === 1,
    enqueuedAt: Number(row.enqueued_at),
    headers: headers ?? {},
    body: bodyOf(row.body),
    priority: PRIORITIES[Number(row.level)] ?? "normal",
    ...(broken === undefined ? {} : { broken }),
  };
}

/** A job's row as a look shows it; its body, which is read by itself, is given beside it. */
export function peekedOf(row: SqlRow, body: unknown, state: JobState): PeekedJob {
  return {
    id: String(row.id),
    state,
    attempts: Number(row.attempts),
    enqueuedAt: Number(row.enqueued_at),
    priority: PRIORITIES[Number(row.level)] ?? "normal",
    headers: headersOf(row.headers) ?? {},
    body: bodyOf(body),
    ...(state === "delayed" ? { dueAt: Number(row.due_at) } : {}),
    ...(state === "dead" ? { error: String(row.error ?? ""), diedAt: Number(row.died_at) } : {}),
  };
}

function bodyOf(stored: unknown): RawBody {
  if (typeof stored === "string" || stored instanceof Uint8Array) return stored;
  return stored instanceof ArrayBuffer ? new Uint8Array(stored) : "";
}

function headersOf(stored: unknown): Readonly<Record<string, string>> | undefined {
  if (stored === "") return {};
  try {
    const parsed: unknown = JSON.parse(String(stored));
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const sound = Object.values(parsed).every((value) => typeof value === "string");
    return sound ? (parsed as Record<string, string>) : undefined;
  } catch {
    return undefined;
  }
}
