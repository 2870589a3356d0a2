/**
 * The NATS broker: a queue in JetStream (nats-server 2.9 or later), reached over WebSocket, so it works wherever a `WebSocket` does.
 *
 * **Layout.** For the queue `emails` and the prefix `EDDY`:
 *
 * | stream | subject | holds |
 * | --- | --- | --- |
 * | `EDDY_JOBS_emails`, a work queue | `eddy.jobs.emails` | ready jobs of normal priority |
 * | | `….high` `….low` | ready jobs of the other levels |
 * | | `….returned.LEVEL` | jobs that were given back; they go before the others of their level |
 * | | `….later.DUE.LEVEL.X` | delayed jobs, one a subject; no consumer holds them |
 * | | `….state.paused` `….state.clock` | whether the queue is paused; a message by which the server's clock is read |
 * | `EDDY_DEAD_emails` | `eddy.dead.emails` | dead letters, with their reason in `Eddy-Error` |
 * | `EDDY_EXHAUSTED_emails` | | the server's notes of jobs that ran out of a source's `max_deliver`; only with such a source |
 *
 * Each of the first three rows has a durable pull consumer (`eddy_normal`, `eddy_high`, …), made when the first claim looks there, so a queue without
 * priorities has one. The jobs' stream republishes the headers of what is stored below `eddy.jobs.emails.` to `eddy.news.emails.`: by that a
 * worker knows, without asking, which of these subjects have anything. A stream or consumer that is there is checked, and refused when it could lose jobs.
 *
 * **Other producers.** Whatever publishes to one of the first two rows' subjects is a producer; body and headers come as they are, `Nats-Msg-Id`, where there
 * is one, is the job's id: `nats req eddy.jobs.emails '{"to":"ada@example.com","subject":"Hello"}'`, whose answer tells that it is stored. A stream of your own
 * can feed a queue too: the option `sources` names it and its consumer. Nobody notices a queue's name there that no queue has.
 *
 * **Cost.** A claim is one pull request, whatever it brings; a few more while there are jobs of other levels, given back, or come due. A pull waits for its
 * first message at the server and ends with what is there. Acks leave in one piece; the last one of each consumer asks for an answer, which stands for
 * all of them. Every other verdict is a copy, published and confirmed where it belongs, and then an ack.
 *
 * **What JetStream cannot give**, and what happens instead:
 *
 * - *Leases.* It knows deliveries. A lease is known to the connection that claimed it; its deadline is reckoned from the moment the pull was sent, so it is never
 *   later than the server's. All workers of a queue share the consumer's `ack_wait`; it is raised to the longest lease asked for, never lowered.
 * - *Fencing.* It takes any ack of a message, whoever has it by now. Here no verdict leaves once its lease's deadline has passed. One that left in time and was
 *   held up on the way until another worker had the job still takes effect: the job then counts as finished though the other runs it too.
 * - *Telling hand-outs apart.* The server counts every hand-out, those too that were lost on their way into a connection that died, or whose pull was ended in that very
 *   moment. If it notices, the job comes again at once: it is too young then for anybody's lease to have run out, and the hand-out is not counted. Else it comes back when
 *   its `ack_wait` is over, as a suspect with an attempt charged, though nobody ran it. What is given back or retried on purpose is counted exactly, for it is a new message.
 * - *Moving a job in one step.* A crash between a copy and its ack leaves both: the job runs once more than it should. A verdict that is sent again adds no
 *   second copy, within `dedupeWindowMs`.
 * - *Keeping what it confirmed.* A server that is killed (SIGKILL, power) forgets the acks and counts of its last moments, some hundred milliseconds: those jobs run
 *   again. One that is shut down gently forgets those that it confirms while it does, and none from before. Messages are kept either way; a few that were acked may even be kept for good: they are shown as held, and nobody gets them.
 * - *Remembering ids.* A restarted server knows only the ids of messages that it still has: a job of an id of its own can be enqueued again once the
 *   first is finished. The ids of all jobs of the last `dedupeWindowMs` are in its memory.
 * - *Taking in a request whole.* See {@linkcode Capability} `atomic`.
 *
 * Every worker lists the delayed jobs when it connects, some 60 bytes each; a hundred thousand are well served. Not kept: the error of a retry (a dead letter's is).
 *
 * @module
 */
import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { checkQueue } from "../checks.ts";
import { Core } from "./core.ts";
import { Link } from "./link.ts";
import { type NatsBrokerOptions, type ResolvedNatsOptions, resolveNatsOptions } from "./options.ts";
import { NatsQueue, QueueParts } from "./queue.ts";

export { type ConnectFailure, NatsConnectError } from "./dial_failure.ts";
export type { NatsBrokerOptions, NatsSource } from "./options.ts";

const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  "waits",
  "abandon",
  "delay",
  "priority",
  "dedupe",
  "sizes",
  "peek",
  "clear",
  "redrive",
  "pause",
]);

/**
 * One connection to NATS over WebSocket. It is opened by the first verb, kept alive by a watchdog, and replaced when it dies.
 *
 * @example
 * ```ts
 * const broker = new NatsBroker({ url: "wss://nats.example.com", credentials });
 * ```
 */
export class NatsBroker implements Broker {
  readonly name = "nats";
  readonly capabilities: ReadonlySet<Capability> = CAPABILITIES;
  readonly #options: ResolvedNatsOptions;
  readonly #link: Link;
  readonly #queues = new Map<string, QueueParts>();

  /**
   * Does no I/O.
   *
   * @throws {TypeError} when an option is unknown or of the wrong kind, or an address, a credential or a name cannot be used.
   * @throws {RangeError} when a number is out of range.
   */
  constructor(options: NatsBrokerOptions) {
    this.#options = resolveNatsOptions(options);
    this.#link = new Link(this.#options);
  }

  /** How often it connected: a WebSocket begins as a request. */
  get requests(): number {
    return this.#link.dials;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    checkQueue(name, settings);
    let parts = this.#queues.get(name);
    if (parts === undefined) {
      parts = new QueueParts(new Core(name, this.#link, this.#options));
      this.#queues.set(name, parts);
    }
    return new NatsQueue(name, settings, parts);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((parts) => parts.close()));
    await this.#link.close();
  }
}
