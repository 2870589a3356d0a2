/**
 * JetStream's own API: requests with JSON, answers with JSON or an error. Only what the adapter needs, and only its fields.
 *
 * @module
 */
import type { Msg } from "nats.ws";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import type { Session } from "./session.ts";

export interface StreamConfig {
  readonly name: string;
  readonly subjects?: readonly string[];
  readonly retention?: string;
  readonly storage?: string;
  readonly discard?: string;
  readonly discard_new_per_subject?: boolean;
  readonly max_msgs?: number;
  readonly max_bytes?: number;
  readonly max_age?: number;
  readonly max_msg_size?: number;
  readonly max_msgs_per_subject?: number;
  readonly max_consumers?: number;
  readonly num_replicas?: number;
  readonly duplicate_window?: number;
  readonly no_ack?: boolean;
  readonly sealed?: boolean;
  readonly deny_delete?: boolean;
  readonly deny_purge?: boolean;
  readonly allow_rollup_hdrs?: boolean;
  readonly republish?: { readonly src?: string; readonly dest: string; readonly headers_only?: boolean };
}

export interface StreamInfo {
  readonly config: StreamConfig;
  readonly state: {
    readonly messages: number;
    readonly first_seq: number;
    readonly last_seq: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  /** Of the subjects asked for: how many there are, and how many one answer lists. */
  readonly total?: number;
}

export interface ConsumerConfig {
  readonly durable_name?: string;
  readonly deliver_subject?: string;
  readonly ack_policy?: string;
  readonly ack_wait?: number;
  readonly max_deliver?: number;
  readonly max_ack_pending?: number;
  readonly max_waiting?: number;
  readonly max_batch?: number;
  readonly max_expires?: number;
  readonly backoff?: readonly number[];
  readonly filter_subject?: string;
  readonly deliver_policy?: string;
  readonly replay_policy?: string;
  readonly headers_only?: boolean;
}

export interface ConsumerInfo {
  readonly stream_name: string;
  readonly name: string;
  readonly config: ConsumerConfig;
  readonly delivered: { readonly stream_seq: number };
  readonly ack_floor: { readonly stream_seq: number };
  readonly num_ack_pending: number;
  readonly num_pending: number;
  readonly num_waiting: number;
}

/** A message as it is stored. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  /** In the protocol's own form; empty where it has none. */
  readonly headerText: string;
  readonly data: Uint8Array;
  /** Unix milliseconds of the server's clock. */
  readonly storedAt: number;
}

/** What the server answered instead. */
export class ApiError extends BrokerError {
  readonly code: number;
  readonly errCode: number;
  /** In the server's words. */
  readonly description: string;
  constructor(verb: string, code: number, errCode: number, description: string) {
    super("nats", verb, `Cannot ${verb}: the server answered ${code}: ${description}`);
    this.code = code;
    this.errCode = errCode;
    this.description = description;
  }
}

/** A stream is not there any more. */
export class StreamGoneError extends BrokerError {
  constructor(verb: string, stream: string) {
    const text = `Cannot ${verb}: the stream ${stream} is gone, with what was in it; it is made anew where this user may do that, else make it, or open the queue again`;
    super("nats", verb, text, { unchanged: true });
  }
}

/** Of the server's words for a stream or a store that takes no more. */
const FULL =
  /^(maximum (messages|bytes) exceeded|maximum messages per subject exceeded|insufficient (storage )?resources|resource limits exceeded)/;

export const STREAM_NOT_FOUND = 10059;
const CONSUMER_NOT_FOUND = 10014;
export const SUBJECTS_OVERLAP = 10065;

const decoder = new TextDecoder();

/** What a stream answered to a message published to it. */
export interface PubAck {
  readonly seq: number;
  readonly duplicate: boolean;
}

/**
 * Reads a stream's answer.
 *
 * @throws {BrokerError} when no stream took it.
 */
export function readPubAck(verb: string, message: Msg, stream: string): PubAck {
  if (isNoResponder(message)) throw new StreamGoneError(verb, stream);
  const answer = parse(message.data) as {
    seq?: number;
    duplicate?: boolean;
    error?: { code?: number; err_code?: number; description?: string };
  };
  if (answer.error !== undefined) {
    const { description = "without a reason" } = answer.error;
    const mend = FULL.test(description)
      ? "; it is full: make room, or raise what it or the server's store may take"
      : "";
    const why = `the stream ${stream} refused it: ${description.slice(0, 200)}${mend}`;
    throw new BrokerError("nats", verb, `Cannot ${verb}: ${why}`);
  }
  return { seq: answer.seq ?? 0, duplicate: answer.duplicate === true };
}

function isNoResponder(message: Msg): boolean {
  return message.data.length === 0 && message.headers?.code === 503;
}

function parse(data: Uint8Array): unknown {
  return JSON.parse(decoder.decode(data));
}

/** The API over one connection, for one verb. */
export class Api {
  readonly #session: Session;
  readonly #verb: string;
  readonly #timeoutMs: number;

  constructor(session: Session, verb: string, timeoutMs: number) {
    this.#session = session;
    this.#verb = verb;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws {ApiError} */
  async ask<T>(subject: string, body: unknown = {}): Promise<T> {
    const [answer] = await this.#all<T>([{ subject, body }]);
    if (answer instanceof ApiError) throw answer;
    return answer as T;
  }

  streamInfo(stream: string, more: { subjects_filter?: string; offset?: number } = {}): Promise<StreamInfo> {
    return this.ask(`STREAM.INFO.${stream}`, more);
  }

  async consumers(stream: string): Promise<ConsumerInfo[]> {
    const all: ConsumerInfo[] = [];
    for (;;) {
      const page = await this.ask<{ consumers: ConsumerInfo[] | null; total: number }>(
        `CONSUMER.LIST.${stream}`,
        {
          offset: all.length,
        },
      );
      const found = page.consumers ?? [];
      all.push(...found);
      if (found.length === 0 || all.length >= page.total) return all;
    }
  }

  /** The consumer, or `undefined` when there is none of that name. */
  async consumerInfo(stream: string, consumer: string): Promise<ConsumerInfo | undefined> {
    const [answer] = await this.#all<ConsumerInfo>([
      { subject: `CONSUMER.INFO.${stream}.${consumer}`, body: {} },
    ]);
    if (!(answer instanceof ApiError)) return answer;
    if (answer.errCode === CONSUMER_NOT_FOUND) return undefined;
    throw answer;
  }

  /** All subjects below a filter, with how many messages each has. */
  async subjects(stream: string, filter: string): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for (;;) {
      const info = await this.streamInfo(stream, { subjects_filter: filter, offset: found.size });
      const before = found.size;
      for (const [subject, count] of Object.entries(info.state.subjects ?? {})) found.set(subject, count);
      if (found.size === before || found.size >= (info.total ?? 0)) return found;
    }
  }

  /** Stored messages, each by sequence or as the newest of a subject, or the next of a subject from a sequence on; `undefined` where there is none. */
  async get(
    stream: string,
    wanted: readonly ({ seq: number; next_by_subj?: string } | { last_by_subj: string })[],
  ): Promise<(StoredMessage | undefined)[]> {
    const answers = await this.#all<{
      message: { subject: string; seq: number; hdrs?: string; data?: string; time: string };
    }>(wanted.map((body) => ({ subject: `STREAM.MSG.GET.${stream}`, body })));
    return answers.map((answer) => {
      if (answer instanceof ApiError) {
        if (answer.code === 404) return undefined;
        throw answer;
      }
      const { message } = answer;
      return {
        subject: message.subject,
        sequence: message.seq,
        headerText: message.hdrs === undefined ? "" : decoder.decode(fromBase64(message.hdrs)),
        data: message.data === undefined ? new Uint8Array() : fromBase64(message.data),
        storedAt: Date.parse(message.time),
      };
    });
  }

  /** Removes messages by sequence. Answers how many were there. */
  async remove(stream: string, sequences: readonly number[]): Promise<number> {
    const answers = await this.#all<{ success?: boolean }>(
      sequences.map((seq) => ({ subject: `STREAM.MSG.DELETE.${stream}`, body: { seq, no_erase: true } })),
    );
    let removed = 0;
    for (const answer of answers) {
      if (!(answer instanceof ApiError)) removed += answer.success === true ? 1 : 0;
      else if (!/not found|no message found/.test(answer.description)) throw answer;
    }
    return removed;
  }

  /** Removes all messages of a subject. Answers how many. */
  async purge(stream: string, filter: string): Promise<number> {
    const { purged } = await this.ask<{ purged?: number }>(`STREAM.PURGE.${stream}`, { filter });
    return purged ?? 0;
  }

  async #all<T>(
    requests: readonly { readonly subject: string; readonly body: unknown }[],
  ): Promise<(T | ApiError)[]> {
    const replies = await this.#session.call(
      this.#verb,
      this.#timeoutMs,
      requests.map(({ subject, body }) => ({
        subject: `$JS.API.${subject}`,
        payload: JSON.stringify(body),
      })),
    );
    return replies.map((reply) => {
      if (isNoResponder(reply)) {
        // Where it was there before, it is away for a while: its disk is full, or its part of the cluster is cut off.
        const Failure = this.#verb === "open" ? BrokerRefusedError : BrokerError;
        throw new Failure(
          "nats",
          this.#verb,
          `Cannot ${this.#verb}: ${this.#session.origin} has no JetStream for this account; switch jetstream on in the server's and the account's configuration`,
        );
      }
      const answer = parse(reply.data) as T & {
        error?: { code?: number; err_code?: number; description?: string };
      };
      const { error } = answer;
      if (error === undefined) return answer;
      return new ApiError(
        this.#verb,
        error.code ?? 0,
        error.err_code ?? 0,
        (error.description ?? "").slice(0, 200),
      );
    });
  }
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
