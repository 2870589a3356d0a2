/**
 * Between a job and a JetStream message: our own headers, and everybody else's. Pure.
 *
 * A job's own headers stand as plain NATS headers. Those that would not survive so (the protocol trims values) travel as JSON in one
 * header of ours. A message without any header of ours is a job too: whatever publishes to the subject is a producer.
 *
 * @module
 */
import { isHeaderName, isHeaderValue, isJobId, MAX_ERROR_LENGTH } from "../../src/broker.ts";

/** The headers of ours, and the server's that we use. */
export const H = {
  /** The server drops a second message of the same id within the stream's duplicate_window. */
  messageId: "Nats-Msg-Id",
  /** `sub`: the server keeps only this newest message of its subject. */
  rollup: "Nats-Rollup",
  id: "Eddy-Id",
  /** Which place of which enqueue it was: tells a copy of the request from a second job of that id. */
  request: "Eddy-Request",
  /** Attempts charged before this message: it is a copy that took the place of an earlier one. */
  attempts: "Eddy-Attempts",
  suspect: "Eddy-Suspect",
  /** When the job was first taken in, Unix milliseconds of the server's clock. */
  enqueuedAt: "Eddy-Enqueued-At",
  /** The place that a job which was given back had: when and under which sequence it was stored. */
  place: "Eddy-Place",
  /** How long a delayed job has to wait, in milliseconds from when its message was stored. */
  delay: "Eddy-Delay",
  /** The job's own headers that cannot stand as they are, as JSON. */
  exact: "Eddy-Headers",
  /** Dead letters: `high`, `normal` or `low`. */
  priority: "Eddy-Priority",
  /** Dead letters: why, as a JSON string. */
  error: "Eddy-Error",
} as const;

/** Headers of a message, in order. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What a message tells of its job. */
export interface Envelope {
  /** The job's id; `undefined` when the message has none, or one that cannot be an id. */
  readonly id: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly attemptsBefore: number;
  readonly suspect: boolean;
  readonly enqueuedAt: number | undefined;
  readonly place: string | undefined;
  readonly delayMs: number | undefined;
  readonly request: string | undefined;
  readonly priority: string | undefined;
  readonly error: string | undefined;
}

const encoder = new TextEncoder();
const LOWER_CASE = /^[a-z0-9_-]+$/;

/** Message headers as nats.ws takes them: whatever can encode itself. */
export class EncodedHeaders {
  readonly #text: string;
  constructor(list: HeaderList) {
    let text = "NATS/1.0\r\n";
    for (const [name, value] of list) text += `${name}: ${value}\r\n`;
    this.#text = `${text}\r\n`;
  }
  /** In bytes: names and values are ASCII. */
  get size(): number {
    return this.#text.length;
  }
  encode(): Uint8Array {
    return encoder.encode(this.#text);
  }
}

/** A job's id in a message id: it has a name space of its own beside the ids of requests and moves. */
export function messageIdOfJob(id: string): string {
  return `id:${id}`;
}

/** The headers of a job's own, as they travel. */
export function ownHeaders(headers: Readonly<Record<string, string>>): HeaderList {
  const list: [string, string][] = [];
  let exact: Record<string, string> | undefined;
  for (const [name, value] of Object.entries(headers)) {
    if (value === value.trim() && !/[^\t\x20-\x7e]/.test(value)) list.push([name, value]);
    else {
      exact ??= {};
      exact[name] = value;
    }
  }
  if (exact !== undefined) list.push([H.exact, asciiJson(exact)]);
  return list;
}

/**
 * Reads a message's headers, in the protocol's own form. Never throws: what cannot be read is left out. Of several headers of one name the first
 * counts.
 */
export function readEnvelope(text: string): Envelope {
  const envelope: Writable = {
    id: undefined,
    headers: {},
    attemptsBefore: 0,
    suspect: false,
    enqueuedAt: undefined,
    place: undefined,
    delayMs: undefined,
    request: undefined,
    priority: undefined,
    error: undefined,
  };
  let exact: string | undefined;
  let messageId: string | undefined;
  // The first line is the protocol's version.
  let from = text.indexOf("\r\n") + 2;
  while (from >= 2 && from < text.length) {
    let to = text.indexOf("\r\n", from);
    if (to < 0) to = text.length;
    const colon = text.indexOf(":", from);
    if (colon > from && colon < to) {
      const name = text.slice(from, colon);
      const value = text.slice(colon + 1, to).trim();
      switch (name) {
        case H.messageId:
          messageId ??= value;
          break;
        case H.id:
          if (envelope.id === undefined && isJobId(value)) envelope.id = value;
          break;
        case H.exact:
          exact ??= value;
          break;
        case H.attempts:
          envelope.attemptsBefore = whole(value) ?? 0;
          break;
        case H.suspect:
          envelope.suspect = value === "1";
          break;
        case H.enqueuedAt:
          envelope.enqueuedAt = whole(value);
          break;
        case H.place:
          envelope.place = value;
          break;
        case H.delay:
          envelope.delayMs = whole(value);
          break;
        case H.request:
          envelope.request = value;
          break;
        case H.priority:
          envelope.priority = value;
          break;
        case H.error:
          envelope.error = errorOf(value);
          break;
        default:
          if (!name.startsWith("Eddy-") && !name.startsWith("Nats-")) take(envelope.headers, name, value);
      }
    }
    from = to + 2;
  }
  if (exact !== undefined) takeExact(envelope.headers, exact);
  if (envelope.id === undefined && messageId !== undefined) {
    const bare = bareId(messageId);
    if (isJobId(bare)) envelope.id = bare;
  }
  return envelope;
}

type Writable = { -readonly [K in keyof Envelope]: Envelope[K] } & { headers: Record<string, string> };

/** The job's id in a message id that was made of one; any other message id as it is. */
function bareId(messageId: string): string {
  return messageId.startsWith("id:") ? messageId.slice(3) : messageId;
}

/** Only what a job's headers may be: a name of the server's own would be obeyed by it when the job is moved. */
function takeExact(headers: Record<string, string>, json: string): void {
  for (const [name, value] of Object.entries(parsed(json) ?? {})) {
    if (isHeaderName(name) && typeof value === "string" && isHeaderValue(value)) headers[name] = value;
  }
}

/** Foreign producers write header names as they like; a job's are lower-case. */
function take(headers: Record<string, string>, name: string, value: string): void {
  const own = LOWER_CASE.test(name) ? name : name.toLowerCase();
  if ((own === name || isHeaderName(own)) && isHeaderValue(value) && !Object.hasOwn(headers, own)) {
    headers[own] = value;
  }
}

function whole(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}

/** An error text as a header can carry it: cut, quoted, ASCII. */
export function errorHeader(error: string): string {
  return asciiJson(error.slice(0, MAX_ERROR_LENGTH).toWellFormed());
}

function errorOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const error = parsed(text);
  return typeof error === "string" ? error : undefined;
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
