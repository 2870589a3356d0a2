/**
 * One connection while it lives: requests with deadlines, several of them in one go, and what happens to them when it dies.
 *
 * @module
 */
import type { Msg, MsgHdrs, NatsConnection } from "nats.ws";
import { Chain, Chained } from "../../src/chain.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { SharedTimer, type Timeout } from "../../src/shared_timer.ts";
import type { Address } from "./address.ts";
import type { EncodedHeaders } from "./envelope.ts";
import type { Incoming } from "./incoming.ts";
import { AnswerTail } from "./outgoing.ts";
import type { SteadySocket } from "./steady_socket.ts";

/** A message to be sent that will be answered. */
export interface Outgoing {
  readonly subject: string;
  readonly payload: Uint8Array | string;
  readonly headers?: EncodedHeaders | undefined;
}

/** What has a subject on which it is answered. */
export interface Addressed {
  readonly reply: Address;
}

/** A subject that is subscribed to. */
export interface Inbox {
  /** Ends it at the server; here it goes on until the server has answered, so nothing on its way is lost. Never rejects. */
  drain(): Promise<void>;
}

interface Waiting {
  readonly verb: string;
  readonly subject: string;
  readonly answer: (message: Msg) => void;
  readonly fail: (error: Error) => void;
}

/** Waits to learn whether the server has read what was sent before. */
export class Proof extends Chained {
  /** Watches over it. */
  timeout: Timeout | undefined;
  readonly #told: (isProven: boolean) => void;
  constructor(told: (isProven: boolean) => void) {
    super();
    this.#told = told;
  }

  /** It is proven, or never will be. Only the first word counts. */
  end(isProven: boolean): void {
    if (this.chain === undefined) return;
    (this.chain as Chain<Proof>).delete(this);
    this.timeout?.cancel();
    this.#told(isProven);
  }
}

function setTimer(ms: number, fn: () => void): () => void {
  const timer = setTimeout(fn, ms);
  return () => clearTimeout(timer);
}

const encoder = new TextEncoder();

/** How long a request that was sent along may take to be answered before the server is asked, in milliseconds. */
const PROOF_MS = 5;

export class Session {
  /** Scheme, host and port. */
  readonly origin: string;
  /** What this connection's inboxes begin with. */
  readonly inbox: string;
  /** Resolves when the connection is over. Never rejects. */
  readonly down: Promise<void>;
  /** For whatever waits for an answer of this connection, by the broker's clock. Ends with it. */
  readonly timer: SharedTimer;
  readonly #nc: NatsConnection;
  readonly #socket: SteadySocket;
  readonly #waiting = new Map<string, Waiting>();
  /** What ends the flushes under way when the connection dies. */
  readonly #flushing = new Set<() => void>();
  readonly #slow: () => void;
  #wentDown: () => void = () => {};
  /** Who waits for a proof. */
  readonly #proving = new Chain<Proof>();
  /** Those among them whose proof is not on its way yet. */
  #unproven: Proof[] = [];
  #serial = 0;
  #isUp = true;
  #denied: Denied | undefined;

  /**
   * @param now the broker's clock.
   * @param slow called when a request was not answered in time.
   */
  constructor(
    nc: NatsConnection,
    socket: SteadySocket,
    origin: string,
    inbox: string,
    now: () => number,
    slow: () => void,
  ) {
    this.#nc = nc;
    this.#socket = socket;
    this.origin = origin;
    this.inbox = inbox;
    this.timer = new SharedTimer({ now, setTimer });
    this.#slow = slow;
    this.down = new Promise((resolve) => {
      this.#wentDown = resolve;
    });
    socket.beforeSending = () => {
      for (const proof of this.witness()) proof.end(false);
    };
    nc.subscribe(`${inbox}.r.*`, {
      callback: (error, message) => {
        // With an error comes no message. It is told of with the others.
        if (error === null) this.#answered(message);
      },
    });
    nc.closed().then(
      () => this.kill(),
      () => this.kill(),
    );
    void this.#hearErrors();
  }

  /** Why nothing may go over this server's connections; `undefined` while nothing is known to stand against it. */
  get refusal(): BrokerRefusedError | undefined {
    return this.#denied === undefined ? undefined : denial("open", this.#denied, this.inbox);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** How many frames came in so far. */
  get framesReceived(): number {
    return this.#socket.received;
  }

  /** The largest message the server takes, headers included, in bytes. */
  get maxPayload(): number {
    return this.#nc.info?.max_payload ?? 1_048_576;
  }

  get serverVersion(): string {
    return this.#nc.info?.version ?? "0";
  }

  /** Sends a message that nobody answers. */
  publish(subject: string, payload: Uint8Array | string, reply?: string): void {
    if (!this.#isUp) return;
    this.#nc.publish(subject, payload, reply === undefined ? undefined : { reply });
  }

  /**
   * As {@linkcode Session.publish}, but at once, with what was written in this turn before: past the client library, which would wait for the turn's end, in
   * which hundreds of handlers may run. Only for a reply inbox that the server is known to have heard of: a new one's subscription still waits there.
   *
   * @param lines what {@linkcode publication} made.
   */
  publishNow(lines: Uint8Array): void {
    if (this.#isUp) this.#socket.sendNow(lines);
  }

  /**
   * Tells whether the server is soon seen to have read what was sent before, without being asked: by its answer to a request that leaves in this same turn and
   * gives {@linkcode Session.witness} back its proofs. If not, `told` is called with `false` at the end of the turn or a few milliseconds later, and may ask then.
   *
   * @param now what the broker's clock has just said.
   */
  prove(now: number, told: (isProven: boolean) => void): void {
    if (!this.#isUp) return told(false);
    const proof = new Proof(told);
    this.#proving.add(proof);
    this.#unproven.push(proof);
    proof.timeout = this.timer.start(PROOF_MS, () => proof.end(false), now);
  }

  /** To be called by whoever sends a request that is answered soon: answers what to end when it is (`true`) or when it never will be. */
  witness(): readonly Proof[] {
    const witnessed = this.#unproven;
    if (witnessed.length > 0) this.#unproven = [];
    return witnessed;
  }

  /**
   * Sends the same short word to where each of many is answered: acks. They go past the client library, as the protocol's own lines and in one piece: a batch has hundreds.
   */
  sayOnly(word: AnswerTail, to: readonly Addressed[]): void {
    if (!this.#isUp) return;
    const { unsent } = this.#socket;
    for (const { reply } of to) unsent.addAnswer(reply, word);
    this.#socket.wrote();
  }

  /**
   * As {@linkcode Session.sayOnly}, each to be answered.
   *
   * @throws {BrokerError} when an answer is missing after `timeoutMs`, or the connection dies.
   */
  say(verb: string, timeoutMs: number, word: string, to: readonly Addressed[]): Promise<Msg[]> {
    if (!this.#isUp) return Promise.reject(this.lost(verb));
    const subjects = to.map(({ reply }) => reply.text);
    return this.#expect(verb, timeoutMs, subjects, (tokens) => {
      const { unsent } = this.#socket;
      to.forEach(({ reply }, at) => {
        unsent.addAnswer(reply, new AnswerTail(word, `${this.inbox}.r.${tokens[at]}`));
      });
      this.#socket.wrote();
    });
  }

  /**
   * Messages to a subject are given to `take` as they come. One that the server does not permit ends the connection.
   *
   * @throws {BrokerError} when the connection is over: the library would throw an error of its own.
   */
  subscribe(subject: string, take: (message: Incoming) => void): Inbox {
    if (!this.#isUp) throw this.lost("claim");
    // The library tells the server of it, but its messages come past the library.
    const subscription = this.#nc.subscribe(subject, { callback: () => {} });
    const { incoming } = this.#socket;
    const number = subscription.getID();
    incoming.open(number, take);
    return {
      drain: () =>
        subscription
          .drain()
          .catch(() => {})
          .then(() => incoming.close(number)),
    };
  }

  /** Sends one message and answers its reply. */
  async ask(verb: string, timeoutMs: number, message: Outgoing): Promise<Msg> {
    return (await this.call(verb, timeoutMs, [message]))[0] as Msg;
  }

  /**
   * Sends messages in one go and answers their replies, in order, when all are there.
   *
   * @throws {BrokerError} when one is missing after `timeoutMs`, or the connection dies.
   */
  call(verb: string, timeoutMs: number, messages: readonly Outgoing[]): Promise<Msg[]> {
    if (!this.#isUp) return Promise.reject(this.lost(verb));
    if (messages.length === 0) return Promise.resolve([]);
    const subjects = messages.map((message) => message.subject);
    return this.#expect(verb, timeoutMs, subjects, (tokens) => {
      messages.forEach(({ subject, payload, headers }, at) => {
        const reply = `${this.inbox}.r.${tokens[at]}`;
        this.#nc.publish(
          subject,
          payload,
          headers === undefined ? { reply } : { reply, headers: headers as unknown as MsgHdrs },
        );
      });
    });
  }

  /** Sends something by `send` that is answered under each of the tokens it is given, and answers the answers. */
  #expect(
    verb: string,
    timeoutMs: number,
    subjects: readonly string[],
    send: (tokens: readonly string[]) => void,
  ): Promise<Msg[]> {
    return new Promise<Msg[]>((resolve, reject) => {
      const replies = new Array<Msg>(subjects.length);
      let missing = subjects.length;
      const tokens = subjects.map(() => {
        this.#serial += 1;
        return this.#serial.toString(36);
      });
      const fail = (error: Error) => {
        cancel();
        for (const token of tokens) this.#waiting.delete(token);
        reject(error);
      };
      const cancel = this.timer.setTimer(timeoutMs, () => {
        fail(this.#late(verb, timeoutMs));
        this.#slow();
      });
      subjects.forEach((subject, at) => {
        const answer = (reply: Msg) => {
          replies[at] = reply;
          missing -= 1;
          if (missing > 0) return;
          cancel();
          resolve(replies);
        };
        this.#waiting.set(tokens[at] as string, { verb, subject, answer, fail });
      });
      try {
        send(tokens);
      } catch (error) {
        fail(this.#refusedHere(verb, error));
      }
    });
  }

  /**
   * Resolves once the server has read everything that was sent before.
   *
   * @throws {BrokerError} when it does not answer within `timeoutMs`, or the connection dies.
   */
  flush(verb: string, timeoutMs: number): Promise<void> {
    if (!this.#isUp) return Promise.reject(this.lost(verb));
    return new Promise<void>((resolve, reject) => {
      const fail = (error: Error) => {
        cancel();
        this.#flushing.delete(lost);
        reject(error);
      };
      const lost = () => fail(this.lost(verb));
      const cancel = this.timer.setTimer(timeoutMs, () => {
        fail(this.#late(verb, timeoutMs));
        this.#slow();
      });
      // The library leaves a flush unanswered when its connection ends.
      this.#flushing.add(lost);
      this.#nc.flush().then(() => {
        cancel();
        this.#flushing.delete(lost);
        resolve();
      }, lost);
    });
  }

  /** Gives the connection up: whatever waits for it fails. May be called twice. */
  kill(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#socket.close();
    // It has nothing to say: its socket is closed already.
    this.#nc.close().catch(() => {});
    for (const waiting of [...this.#waiting.values()]) waiting.fail(this.lost(waiting.verb));
    this.#waiting.clear();
    for (const lost of [...this.#flushing]) lost();
    for (const proof of this.#proving.all()) proof.end(false);
    this.timer.close();
    this.#wentDown();
  }

  #answered(message: Msg): void {
    const { subject } = message;
    const token = subject.slice(subject.lastIndexOf(".") + 1);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    this.#waiting.delete(token);
    waiting.answer(message);
  }

  #late(verb: string, timeoutMs: number): BrokerError {
    const text = `Cannot ${verb}: ${this.origin} did not answer within ${Math.round(timeoutMs)} ms`;
    return new BrokerError("nats", verb, text);
  }

  /** Said of a request whose connection died. */
  lost(verb: string): BrokerError {
    if (this.#denied !== undefined) return denial(verb, this.#denied, this.inbox);
    return new BrokerError("nats", verb, `Cannot ${verb}: the connection to ${this.origin} was lost`);
  }

  /** What nats.ws itself would not send. Its texts are constants. */
  #refusedHere(verb: string, error: unknown): Error {
    const code = (error as { code?: unknown } | null)?.code;
    if (code === "MAX_PAYLOAD_EXCEEDED") {
      return new RangeError(
        `Cannot ${verb}: a message with its headers is larger than the server's max_payload of ${this.maxPayload} bytes; store the data elsewhere and enqueue where`,
      );
    }
    return new BrokerError(
      "nats",
      verb,
      `Cannot ${verb}: the client would not send it (${typeof code === "string" ? code : "no code"})`,
    );
  }

  /**
   * A missing permission comes as an error of its own, and the request for it would wait in vain. What is not waited for by its subject (acks, pulls, inboxes) is
   * needed all the same: without it jobs would run again and again, or never. So nothing goes over this connection any more.
   */
  async #hearErrors(): Promise<void> {
    for await (const status of this.#nc.status()) {
      const denied = (status as { permissionContext?: Denied }).permissionContext;
      if (denied === undefined) continue;
      const asked = [...this.#waiting.values()].filter((waiting) => waiting.subject === denied.subject);
      for (const waiting of asked) waiting.fail(denial(waiting.verb, denied, this.inbox));
      if (asked.length > 0) continue;
      this.#denied = denied;
      this.kill();
    }
  }
}

/** A message as the protocol has it, to be sent as it stands. */
export function publication(subject: string, payload: string, reply: string): Uint8Array {
  return encoder.encode(`PUB ${subject} ${reply} ${payload.length}\r\n${payload}\r\n`);
}

/** What the server does not permit. */
interface Denied {
  readonly operation: string;
  readonly subject: string;
}

function denial(verb: string, { operation, subject }: Denied, inbox: string): BrokerRefusedError {
  const what = operation === "publish" ? "publish" : "subscribe to";
  // Neither an inbox nor a single delivery is what a permission is given for.
  const which = subject.startsWith(inbox)
    ? "_INBOX.>"
    : subject.replace(/^(\$JS\.ACK\.[^.]+\.[^.]+)\..*/, "$1.>").slice(0, 200);
  const text = `The server does not let this user ${what} ${which}; give it that permission`;
  return new BrokerRefusedError("nats", verb, text);
}
