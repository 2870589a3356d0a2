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
  /** When a delayed job is due, Unix milliseconds of the server's clock. */
  dueAt: "Eddy-Due-At",
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
  readonly dueAt: number | undefined;
  readonly request: string | undefined;
  readonly priority: string | undefined;
  readonly error: string | undefined;
}

const encoder = new TextEncoder();

/** Message headers as nats.ws takes them: whatever can encode itself. */
export class EncodedHeaders {
  readonly #text: string;
  constructor(list: HeaderList) {
    let text = "NATS/1.0\r\n";
    for (const [name, value] of list) text += `${name}: ${value}\r\n`;
    this.#text = `${text}\r\n`;
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

/** Reads a message's headers. Never throws: what cannot be read is left out. */
export function readEnvelope(received: Iterable<[string, string[]]> | undefined): Envelope {
  const headers: Record<string, string> = {};
  const ours = new Map<string, string>();
  for (const [name, values] of received ?? []) {
    const value = values[0] as string;
    if (name.startsWith("Eddy-") || name.startsWith("Nats-")) ours.set(name, value);
    else take(headers, name, value);
  }
  const exact = ours.get(H.exact);
  if (exact !== undefined) {
    for (const [name, value] of Object.entries(parsed(exact) ?? {})) {
      if (typeof value === "string") headers[name] = value;
    }
  }
  return {
    id: idOf(ours),
    headers,
    attemptsBefore: whole(ours.get(H.attempts)) ?? 0,
    suspect: ours.get(H.suspect) === "1",
    enqueuedAt: whole(ours.get(H.enqueuedAt)),
    place: ours.get(H.place),
    dueAt: whole(ours.get(H.dueAt)),
    request: ours.get(H.request),
    priority: ours.get(H.priority),
    error: errorOf(ours.get(H.error)),
  };
}

/** Whether any message header is one of ours; a message without was published by somebody else. */
function idOf(ours: ReadonlyMap<string, string>): string | undefined {
  const id = ours.get(H.id);
  if (id !== undefined && isJobId(id)) return id;
  const messageId = ours.get(H.messageId);
  if (messageId === undefined) return undefined;
  const bare = messageId.startsWith("id:") ? messageId.slice(3) : messageId;
  return isJobId(bare) ? bare : undefined;
}

/** Foreign producers write header names as they like; a job's are lower-case. */
function take(headers: Record<string, string>, name: string, value: string): void {
  const own = isHeaderName(name) || /^[a-z0-9_-]+$/.test(name) ? name : name.toLowerCase();
  if ((isHeaderName(own) || own === name) && isHeaderValue(value)) headers[own] = value;
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
