/**
 * The Redis broker: a queue in any Redis from 6.2 on that is reached over HTTP (Upstash's REST protocol), so it works wherever `fetch`
 * does.
 *
 * **Layout.** All keys of a queue share one hash tag, so a cluster keeps them in one place. For the queue `emails` and the
 * prefix `eddy` each begins with `eddy:{emails}:`, and then
 *
 * | key | type | holds |
 * | --- | --- | --- |
 * | `queue` | hash | `generation` (a mark that vanishes with the data), `place` (a counter), `paused`, `memo`, `passed:1` and `passed:2` (how often normal and low jobs were passed over), `largest` (the size of the largest record there was) |
 * | `ready:0` `ready:1` `ready:2` | lists | records of ready jobs: high, normal, low |
 * | `returned` | sorted set | records that were handed out and came back, by level and place; they go before those of the lists |
 * | `delayed` | sorted set | records by due time |
 * | `inbox` | list | raw bodies from other producers |
 * | `lease:ID` | list, then string | first how many deliveries are open, then their records; once it is over, for 60 s, which were lost |
 * | `leases` | sorted set | lease ids by deadline |
 * | `dead`, `dead:order`, `dead:ids` | hash, sorted sets | dead letters, their order, and where to find an id |
 * | `id:ID`, `request:ID`, `part:ID:N` | strings, list | ids and enqueues that are remembered for the dedupe window; parts of a large enqueue |
 *
 * and the channel `wake` is published to. A record is a job with its body, in one string (`scripts/common.ts`), so it moves
 * from place to place as it is, and a batch is one `LPOP` and one `RPUSH`, however many jobs; where some may be so large that they
 * would not fit into a reply, it is picked in several, so that a script handles no more than it brings.
 *
 * **Cost.** `claim`, `settle`, `renew` and `exchange` are one script. An exchange that acks a whole batch and claims the next
 * runs 11 commands within one EVALSHA, whatever the batch's size and the backlog's; up to ten more while levels are mixed. Settling part of
 * a lease takes two more a delivery. Each verb is one request, two when the server has forgotten the script. An ended lease is
 * remembered for a minute in some 150 bytes.
 *
 * **Other producers.** Any client in any language enqueues with one command, the body as it is:
 * `RPUSH eddy:{emails}:inbox BODY`. Idle workers find it when they next look, or at once after
 * `PUBLISH eddy:{emails}:wake 1`. Such jobs have normal priority, no headers, and ids that begin with `inbox:`. One that is larger than a
 * request may be (`maxRequestBytes`) becomes a dead letter when it is claimed.
 *
 * **Guards.** `open` refuses a Redis that may evict keys, and warns of one without an append-only file: after a restart from a snapshot
 * the newest jobs are missing, and the generation is there as before. Once a handle has seen the queue's generation, it stops with a
 * `BrokerRefusedError` when it finds that gone or changed: a flush or an eviction took jobs along. That handle then serves nothing any more, and
 * never founds the queue anew; that is left to whoever opens it next, after somebody has looked. A producer that never opened the queue has seen
 * nothing: its first enqueue adopts the generation that is there, or founds one, and binds it likewise. A `clear` keeps the generation. A full
 * Redis refuses to enqueue, and can still be worked empty.
 *
 * Not kept: the error of a retry (a dead letter's is). A claim may be short of what is there where bodies are large (`maxReplyBytes`);
 * then `nextDueMs` is 0.
 *
 * @module
 */
import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { checkQueue } from "../checks.ts";
import { ALL_BUT_WAITS } from "../offers.ts";
import { type RedisBrokerOptions, type ResolvedRedisOptions, resolveRedisOptions } from "./options.ts";
import { type Connection, RedisQueue } from "./queue.ts";

export type { RedisBrokerOptions } from "./options.ts";

/**
 * One connection to a Redis over HTTP.
 *
 * @example
 * ```ts
 * const broker = new RedisBroker({ url: "https://example.upstash.io", token });
 * ```
 */
export class RedisBroker implements Broker {
  readonly name = "redis";
  readonly capabilities: ReadonlySet<Capability> = ALL_BUT_WAITS;
  readonly #connection: Connection;
  readonly #watches = new Set<() => void>();
  #requests = 0;
  #isClosed = false;

  /**
   * Makes no request.
   *
   * @throws {TypeError} when url, token or prefix cannot be used.
   * @throws {RangeError} when a number is out of range.
   */
  constructor(options: RedisBrokerOptions) {
    const resolved: ResolvedRedisOptions = resolveRedisOptions(options);
    const isClosed = () => this.#isClosed;
    const warned = new Set<string>();
    this.#connection = {
      options: resolved,
      get isClosed() {
        return isClosed();
      },
      countRequest: () => {
        this.#requests += 1;
      },
      warn: (text) => {
        if (warned.has(text)) return;
        warned.add(text);
        resolved.onWarning(text);
      },
      keep: (end) => {
        this.#watches.add(end);
        return () => {
          this.#watches.delete(end);
          end();
        };
      },
    };
  }

  get requests(): number {
    return this.#requests;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    checkQueue(name, settings);
    return new RedisQueue(name, settings, this.#connection);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#watches) end();
    this.#watches.clear();
  }
}
