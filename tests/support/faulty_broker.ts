/**
 * A broker for tests: the memory broker behind a link that can delay, lose, repeat, hang and refuse, and that counts what it was asked. It
 * can also lack capabilities, or hold claims open as an engine with `waits` does.
 *
 * @module
 */
import { MemoryBroker } from "../../adapters/memory.ts";
import type {
  Broker,
  BrokerLimits,
  BrokerQueue,
  Capability,
  ClaimReply,
  ClaimRequest,
  Enqueued,
  ExchangeReply,
  ExchangeRequest,
  NewJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
  Watch,
} from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import type { Platform } from "../../src/platform.ts";

export type Verb =
  | "open"
  | "enqueue"
  | "claim"
  | "settle"
  | "renew"
  | "exchange"
  | "abandon"
  | "watch"
  | "sizes";

/** One request, as the link saw it. */
export interface Asked {
  readonly verb: Verb;
  readonly queue: string;
  /** When it was sent, in milliseconds of the platform's clock. */
  readonly at: number;
  /** How many requests of this verb came before it. */
  readonly nth: number;
  /** Of a claim, alone or in an exchange. */
  readonly claim: ClaimRequest | undefined;
  readonly settle: readonly Settlement[];
  readonly renew: readonly string[];
  readonly abandon: readonly string[];
  readonly enqueue: { readonly requestId: string; readonly jobs: readonly NewJob[] } | undefined;
  /** When it was answered (or failed), once it was. */
  answeredAt: number | undefined;
}

/**
 * What the link does to a request. `lost`: it never arrives, and fails. `replyLost`: it takes effect, then fails. `hangs` and
 * `hangsAfter`: the same two, but it is never answered at all. `repeated`: it arrives twice. `refused`: a final error.
 * `full`: an error that is known to have changed nothing. `throws`: the adapter throws instead of rejecting.
 */
export type Fault =
  | "lost"
  | "replyLost"
  | "hangs"
  | "hangsAfter"
  | "repeated"
  | "refused"
  | "full"
  | "throws"
  | { readonly delayMs: number; readonly replyMs?: number };

export interface FaultyOptions {
  readonly platform: Platform;
  /** The engine. By default a new one on the platform's clock. */
  readonly engine?: MemoryBroker;
  /** A round trip, in milliseconds; half of it each way. Default 0. */
  readonly roundTripMs?: number;
  readonly lacks?: readonly Capability[];
  /** Whether the engine holds claims open. Then it has no `exchange` and no `wake`. Default false. */
  readonly waits?: boolean;
  readonly limits?: Partial<BrokerLimits>;
  /** Whether the engine cannot tell when something comes due. Default false. */
  readonly blind?: boolean;
  /** Whether `requests` counts (an engine over HTTP). Default true. */
  readonly counts?: boolean;
}

/** The text of every failure that the link makes up. */
export const LINK_FAULT = "the link failed";

export class FaultyBroker implements Broker {
  readonly name = "faulty";
  readonly capabilities: ReadonlySet<Capability>;
  readonly engine: MemoryBroker;
  readonly log: Asked[] = [];
  readonly limits: Partial<BrokerLimits>;
  readonly waits: boolean;
  readonly blind: boolean;
  readonly #options: FaultyOptions;
  readonly #platform: Platform;
  readonly #counts = new Map<Verb, number>();
  roundTripMs: number;
  /** Decides what happens to a request. `undefined`: it goes through. */
  fault: (asked: Asked) => Fault | undefined = () => undefined;
  /** Breaks all watches, as a dropped subscription does. */
  readonly breakWatches = new Set<(error: Error) => void>();
  /** What happens before a watch is closed. */
  closeWatch: () => Promise<void> = () => Promise.resolve();
  isClosed = false;
  /** Requests beyond those logged: an engine that has to be taught first, so that one call takes two. */
  taught = 0;
  /** Names this line among all of the world. */
  readonly lineId: string;

  constructor(options: FaultyOptions) {
    const { platform, waits = false, lacks = [] } = options;
    this.#options = options;
    this.#platform = platform;
    this.lineId = platform.randomId();
    this.waits = waits;
    this.blind = options.blind ?? false;
    this.limits = options.limits ?? {};
    this.roundTripMs = options.roundTripMs ?? 0;
    this.engine =
      options.engine ?? new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
    const has = new Set(this.engine.capabilities);
    for (const one of waits ? ([...lacks, "exchange", "wake"] as const) : lacks) has.delete(one);
    if (waits) has.add("waits");
    this.capabilities = has;
  }

  get requests(): number {
    return this.#options.counts === false ? 0 : this.log.length + this.taught;
  }

  /** How many requests of some verbs (by default of all) were sent. */
  count(...verbs: Verb[]): number {
    return verbs.length === 0 ? this.log.length : this.of(...verbs).length;
  }

  /** The requests of some verbs. */
  of(...verbs: Verb[]): Asked[] {
    return this.log.filter((asked) => verbs.includes(asked.verb));
  }

  /** The requests that asked for jobs. */
  get claims(): Asked[] {
    return this.log.filter((asked) => asked.claim !== undefined);
  }

  /** Another line to the same engine. */
  another(options: Partial<FaultyOptions> = {}): FaultyBroker {
    return new FaultyBroker({ ...this.#options, engine: this.engine.connect(), ...options });
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    return new FaultyQueue(this, this.#platform, this.engine.queue(name, settings));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.engine.close();
  }

  /** Sends one request over the link. */
  send<T>(asked: Partial<Asked> & { verb: Verb; queue: string }, act: () => Promise<T>): Promise<T> {
    const nth = this.#counts.get(asked.verb) ?? 0;
    this.#counts.set(asked.verb, nth + 1);
    const entry: Asked = {
      claim: undefined,
      settle: [],
      renew: [],
      abandon: [],
      enqueue: undefined,
      answeredAt: undefined,
      ...asked,
      at: this.#platform.now(),
      nth,
    };
    this.log.push(entry);
    const fault = this.fault(entry);
    if (fault === "throws") throw new BrokerError(this.name, asked.verb, LINK_FAULT);
    return this.#travel(entry, fault, act).finally(() => {
      entry.answeredAt = this.#platform.now();
    });
  }

  async #travel<T>(entry: Asked, fault: Fault | undefined, act: () => Promise<T>): Promise<T> {
    const there = typeof fault === "object" ? fault.delayMs : this.roundTripMs / 2;
    const back = typeof fault === "object" ? (fault.replyMs ?? 0) : this.roundTripMs / 2;
    const failure = () => new BrokerError(this.name, entry.verb, LINK_FAULT);
    await this.#wait(there);
    if (fault === "hangs") return new Promise<T>(() => {});
    if (fault === "lost") throw failure();
    if (fault === "refused") throw new BrokerRefusedError(this.name, entry.verb, "keys may be evicted");
    const result = await act();
    if (fault === "full") throw new BrokerError(this.name, entry.verb, LINK_FAULT, { unchanged: true });
    if (fault === "repeated") await act();
    if (fault === "hangsAfter") return new Promise<T>(() => {});
    await this.#wait(back);
    if (fault === "replyLost") throw failure();
    return result;
  }

  #wait(ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#platform.setTimer(ms, resolve);
    });
  }
}

/** How often an engine that waits looks, in milliseconds. */
const WAIT_STEP_MS = 5;

class FaultyQueue implements BrokerQueue {
  readonly name: string;
  readonly limits: BrokerLimits;
  readonly #broker: FaultyBroker;
  readonly #platform: Platform;
  readonly #inner: BrokerQueue;
  #probes = 0;
  readonly exchange?: NonNullable<BrokerQueue["exchange"]>;
  readonly abandon?: NonNullable<BrokerQueue["abandon"]>;
  readonly watch?: NonNullable<BrokerQueue["watch"]>;
  readonly sizes?: NonNullable<BrokerQueue["sizes"]>;

  constructor(broker: FaultyBroker, platform: Platform, inner: BrokerQueue) {
    this.#broker = broker;
    this.#platform = platform;
    this.#inner = inner;
    this.name = inner.name;
    this.limits = { ...inner.limits, ...broker.limits };
    const { capabilities } = broker;
    if (capabilities.has("exchange")) this.exchange = (request) => this.#exchange(request);
    if (capabilities.has("abandon")) this.abandon = (leaseIds) => this.#abandon(leaseIds);
    if (capabilities.has("wake")) this.watch = (onWake, onEnd) => this.#watch(onWake, onEnd);
    if (capabilities.has("sizes")) this.sizes = () => this.#sizes();
  }

  get memo(): string | undefined {
    return this.#inner.memo;
  }

  open(): Promise<void> {
    return this.#broker.send({ verb: "open", queue: this.name }, () => this.#inner.open());
  }

  enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return this.#broker.send({ verb: "enqueue", queue: this.name, enqueue: { requestId, jobs } }, () =>
      this.#inner.enqueue(requestId, jobs),
    );
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.#broker.send({ verb: "claim", queue: this.name, claim: request }, async () => {
      if (this.#broker.waits) await this.#somethingThere(request);
      return this.#seen(await this.#inner.claim(request));
    });
  }

  #seen(reply: ClaimReply): ClaimReply {
    return this.#broker.blind ? { ...reply, nextDueMs: undefined } : reply;
  }

  settle(settle: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return this.#broker.send({ verb: "settle", queue: this.name, settle: [...settle] }, () =>
      this.#inner.settle(settle),
    );
  }

  renew(renew: readonly string[]): Promise<readonly RenewResult[]> {
    return this.#broker.send({ verb: "renew", queue: this.name, renew: [...renew] }, () =>
      this.#inner.renew(renew),
    );
  }

  #exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    const { settle, renew, claim } = request;
    return this.#broker.send(
      { verb: "exchange", queue: this.name, settle: [...settle], renew: [...renew], claim },
      async () => {
        const reply = await (this.#inner.exchange as NonNullable<BrokerQueue["exchange"]>)(request);
        return reply.claimed === undefined ? reply : { ...reply, claimed: this.#seen(reply.claimed) };
      },
    );
  }

  #abandon(leaseIds: readonly string[]): Promise<void> {
    return this.#broker.send({ verb: "abandon", queue: this.name, abandon: [...leaseIds] }, () =>
      (this.#inner.abandon as NonNullable<BrokerQueue["abandon"]>)(leaseIds),
    );
  }

  #watch(onWake: () => void, onEnd: (error: Error) => void): Promise<Watch> {
    return this.#broker.send({ verb: "watch", queue: this.name }, async () => {
      const watch = await (this.#inner.watch as NonNullable<BrokerQueue["watch"]>)(onWake, onEnd);
      const { breakWatches } = this.#broker;
      const breaking = (error: Error) => {
        breakWatches.delete(breaking);
        void watch.close();
        onEnd(error);
      };
      breakWatches.add(breaking);
      return {
        close: async () => {
          breakWatches.delete(breaking);
          await this.#broker.closeWatch();
          await watch.close();
        },
      };
    });
  }

  #sizes(): Promise<QueueSizes> {
    return this.#broker.send({ verb: "sizes", queue: this.name }, () =>
      (this.#inner.sizes as NonNullable<BrokerQueue["sizes"]>)(),
    );
  }

  /** Waits until a claim would bring something. Only a claim can tell: it takes back what ran out. So one is made, and undone. */
  async #somethingThere({ waitMs, signal }: ClaimRequest): Promise<void> {
    const end = this.#platform.now() + waitMs;
    for (;;) {
      this.#probes += 1;
      const leaseId = `probe-${this.#broker.lineId}-${this.#probes}`;
      const { deliveries } = await this.#inner.claim({ leaseId, max: 1, waitMs: 0 });
      if (deliveries.length > 0) await this.#inner.abandon?.([leaseId]);
      if (deliveries.length > 0 || signal?.aborted === true || this.#platform.now() >= end) return;
      await new Promise<void>((resolve) => {
        this.#platform.setTimer(WAIT_STEP_MS, resolve);
      });
    }
  }
}
