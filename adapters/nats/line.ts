/**
 * A permanent inbox for pull requests on one consumer: one pull at a time, ended by its last message or by a status.
 *
 * The server names the pull in its statuses only; a message carries the subject it was published to. So a line never has two pulls on the way, and one
 * whose pull was given up is not used again.
 *
 * @module
 */
import { Chained } from "../../src/chain.ts";
import { BrokerError } from "../../src/errors.ts";
import { type Incoming, statusOf } from "./incoming.ts";
import type { Lane } from "./lane.ts";
import { type Inbox, type Proof, publication, type Session } from "./session.ts";

/** How a pull ended. `short`: fewer came than were asked for, no more are there. */
export type PullEnd = "full" | "short" | "retired";

const NONE: readonly Proof[] = [];

/** A request for messages, and whoever made it. */
export abstract class LinePull extends Chained {
  readonly batch: number;
  /** How many messages came. */
  got = 0;
  /** What its statuses are told by. */
  token = "";
  /** Told once the server is seen to have read what was sent before it. */
  proofs = NONE;
  /** Whether whoever asked has been answered; what comes now comes late. */
  isOver = false;

  constructor(batch: number) {
    super();
    this.batch = batch;
  }

  /** Is given each message as it comes; after {@linkcode LinePull.ended}, when the pull was given up. */
  abstract take(message: Incoming): void;
  /** Called once, unless {@linkcode LinePull.failed} is. */
  abstract ended(end: PullEnd): void;
  /** The connection died, or the server ended the pull with an error. */
  abstract failed(error: BrokerError): void;
}

/** How long a given-up pull's messages are waited for, in milliseconds; a connection that is dead is found so earlier. */
const LATE_MS = 30_000;

export class Line {
  readonly session: Session;
  readonly lane: Lane;
  readonly #subject: string;
  readonly #next: string;
  readonly #inbox: Inbox;
  readonly #stray: (lane: Lane, message: Incoming) => void;
  #pull: LinePull | undefined;
  /** What was sent last, and for which wait, size and token: mostly it is the same again. */
  #asked = { waitMs: -1, batch: 0, token: "", lines: new Uint8Array() as Uint8Array };
  #serial = 0;
  /** Whether the pull before, or the one on the way as far as it has come, was asked for once and brought all. */
  #wasPlain = false;
  /** Whether the server is known to have heard of the inbox. */
  #isHeard = false;
  #retiring: Promise<void> | undefined;

  /** @param stray is given messages that come while no pull is on the way. */
  constructor(session: Session, lane: Lane, name: string, stray: (lane: Lane, message: Incoming) => void) {
    this.session = session;
    this.lane = lane;
    this.#subject = `${session.inbox}.p.${name}`;
    this.#next = `$JS.API.CONSUMER.MSG.NEXT.${lane.stream}.${lane.consumer}`;
    this.#stray = stray;
    this.#inbox = session.subscribe(`${this.#subject}.*`, (message) => this.#received(message));
  }

  /** Whether it may be used for another pull. */
  get isIdle(): boolean {
    return this.#pull === undefined && this.#retiring === undefined && this.session.isUp;
  }

  /** Asks for up to {@linkcode LinePull.batch} messages. What is there comes at once; when there is nothing, the first is waited for up to `waitMs`. */
  pull(pull: LinePull, waitMs: number): void {
    if (!this.session.isUp) return pull.failed(this.session.lost("claim"));
    pull.proofs = this.session.witness();
    this.#pull = pull;
    this.#ask(pull, waitMs);
  }

  /** Asks once more where nothing has come: nats-server 2.9 never answers a pull, not even with a status, that comes in the very moment in which its consumer was made. */
  askAgain(): void {
    const pull = this.#pull;
    if (pull !== undefined && !pull.isOver && pull.got === 0 && this.#retiring === undefined)
      this.#ask(pull, 0);
  }

  #ask(pull: LinePull, waitMs: number): void {
    // Statuses of a pull before are not this one's: they name their own. One that brought all it asked for, asked once, gets none any more; and the server finds a subject that it
    // knows in a fraction of the time.
    if (!this.#wasPlain) this.#serial += 1;
    this.#wasPlain = pull.token === "";
    pull.token = this.#serial.toString(36);
    if (this.#isHeard) return this.session.publishNow(this.#lines(pull, Math.floor(waitMs)));
    this.session.publish(
      this.#next,
      request(pull.batch, Math.floor(waitMs)),
      `${this.#subject}.${pull.token}`,
    );
  }

  #lines({ batch, token }: LinePull, waitMs: number): Uint8Array {
    const last = this.#asked;
    if (last.batch === batch && last.waitMs === waitMs && last.token === token) return last.lines;
    const lines = publication(this.#next, request(batch, waitMs), `${this.#subject}.${token}`);
    this.#asked = { waitMs, batch, token, lines };
    return lines;
  }

  /** Ends the pull on the way, and the line with it: the server forgets the pull, and it is answered once all that was sent for it is here. */
  retire(): void {
    this.#retiring ??= this.#retire();
  }

  /** Ends the pull on the way as {@linkcode Line.retire} does, but answers it at once: what comes still is given to it late. */
  giveUp(): void {
    this.retire();
    const pull = this.#pull;
    if (pull === undefined || pull.isOver) return;
    pull.isOver = true;
    pull.ended("retired");
  }

  /** The connection is over. */
  broke(): void {
    const pull = this.#pull;
    this.#pull = undefined;
    if (pull?.isOver === false) this.#fail(pull, this.session.lost("claim"));
  }

  /** Never rejects. */
  async #retire(): Promise<void> {
    const drained = this.#inbox.drain();
    await this.session.flush("claim", LATE_MS).then(
      () => drained,
      () => {},
    );
    this.#end("retired");
  }

  #received(message: Incoming): void {
    this.#isHeard = true;
    const pull = this.#pull;
    if (pull !== undefined && pull.proofs.length > 0) {
      for (const proof of pull.proofs) proof.end(true);
      pull.proofs = NONE;
    }
    if (message.reply !== undefined) {
      if (pull === undefined) return this.#stray(this.lane, message);
      pull.got += 1;
      pull.take(message);
      if (pull.got >= pull.batch) this.#end("full");
      return;
    }
    // A status: never a message, whatever it says.
    const { code, description } = statusOf(message) ?? { code: 0, description: "" };
    if (pull === undefined || code === 100 || !message.subject.endsWith(`.${pull.token}`)) return;
    if (code === 404 || code === 408) return this.#end("short");
    this.#pull = undefined;
    if (pull.isOver) return;
    const why = `Cannot claim: the server ended the request with ${code} ${description.slice(0, 100)}`;
    this.#fail(pull, new BrokerError("nats", "claim", why));
  }

  #fail(pull: LinePull, error: BrokerError): void {
    pull.isOver = true;
    pull.failed(error);
  }

  #end(end: PullEnd): void {
    const pull = this.#pull;
    this.#pull = undefined;
    // Asked for twice, it may have been filled by the one request while the other is still at work: what that brings would be taken for the next pull's answer.
    if (end === "full" && !this.#wasPlain) this.retire();
    if (end !== "full") this.#wasPlain = false;
    if (pull === undefined || pull.isOver) return;
    pull.isOver = true;
    pull.ended(end);
  }
}

/** `no_wait` ends the pull with what is there; with `expires` it waits for a first message before. `waitMs` is whole. */
function request(batch: number, waitMs: number): string {
  return `{"batch":${batch},"no_wait":true${waitMs >= 1 ? `,"expires":${waitMs}000000` : ""}}`;
}
