/**
 * A job's record, as the scripts keep it: see `scripts/common.ts` for its form.
 *
 * @module
 */
import { isJobId, type NewJob, type Priority, type RawBody } from "../../src/broker.ts";
import { asText, fromBase64, fromEscaped, toBase64 } from "./bytes.ts";

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"];
const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** What a record says. */
export interface ReadRecord {
  readonly place: number;
  readonly enqueuedAt: number;
  /** Attempts charged by earlier deliveries. */
  readonly attempts: number;
  readonly suspect: boolean;
  readonly priority: Priority;
  /** Empty when the record is malformed. */
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RawBody;
  readonly broken: string | undefined;
}

/** A new job's record but for its place and time, which only the broker knows. */
export function newRecord(job: NewJob): string {
  const level = PRIORITIES.indexOf(job.priority);
  let encoding = "t";
  let body: string | undefined;
  // Half a surrogate pair has no UTF-8 form; what stands for it is what every encoder puts there.
  if (typeof job.body === "string") body = job.body.toWellFormed();
  else body = asText(job.body);
  if (body === undefined) {
    encoding = "b";
    body = toBase64(job.body as Uint8Array);
  }
  let headers = "";
  for (const _name in job.headers) {
    headers = JSON.stringify(job.headers);
    break;
  }
  return `0|0|${level}|${encoding}|${job.id}|${headers}\n${body}`;
}

/** Reads a record. Never throws: one that is malformed comes with `broken` and all of it as its body. */
export function readRecord(record: string): ReadRecord {
  const a = record.indexOf("|");
  const b = record.indexOf("|", a + 1);
  const c = record.indexOf("|", b + 1);
  // attempts, one digit of suspect, one of level, one letter of encoding: `…|3|0|1|t|id|headers⏎`
  const d = record.indexOf("|", c + 7);
  const end = record.indexOf("\n", d + 1);
  const place = digits(record, 0, a);
  const enqueuedAt = digits(record, a + 1, b);
  const attempts = digits(record, b + 1, c);
  const priority = PRIORITIES[record.charCodeAt(c + 3) - 48];
  const id = record.slice(c + 7, d);
  const fits =
    place >= 0 &&
    enqueuedAt >= 0 &&
    attempts >= 0 &&
    d > c + 7 &&
    end > d &&
    record[c + 2] === "|" &&
    record[c + 4] === "|" &&
    record[c + 6] === "|";
  if (!fits || priority === undefined || !isJobId(id)) return malformed(record);
  const encoding = record[c + 5] as string;
  let headers = NO_HEADERS;
  let body: RawBody = record.slice(end + 1);
  let broken: string | undefined;
  if (encoding !== "t" || end > d + 1) {
    try {
      if (end > d + 1) headers = readHeaders(record.slice(d + 1, end));
      body = decode(encoding, body);
      if (encoding === "T" || encoding === "X") broken = "the stored record was malformed";
    } catch {
      headers = NO_HEADERS;
      broken = "the stored headers or body cannot be decoded";
    }
  }
  const suspect = record.charCodeAt(c + 1) === 49;
  return { place, enqueuedAt, attempts, suspect, priority, id, headers, body, broken };
}

/** The number that stands there; -1 where something else does. By hand: of a batch's records there are many, and each has three. */
function digits(text: string, from: number, to: number): number {
  if (to <= from) return -1;
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function readHeaders(json: string): Record<string, string> {
  const parsed: unknown = JSON.parse(json);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error("no headers");
  return parsed as Record<string, string>;
}

function decode(encoding: string, text: string): RawBody {
  switch (encoding) {
    case "t":
    case "T":
      return text;
    case "b":
      return fromBase64(text);
    case "x":
    case "X":
      return fromEscaped(text);
  }
  throw new Error("unknown encoding");
}

function malformed(record: string): ReadRecord {
  return {
    place: 0,
    enqueuedAt: 0,
    attempts: 0,
    suspect: false,
    priority: "normal",
    id: "",
    headers: NO_HEADERS,
    body: record,
    broken: "the stored record is malformed",
  };
}
