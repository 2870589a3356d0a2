/**
 * A machine's link to the broker: requests travel, arrive at the broker's door, and are answered, unless the plan's faults have it otherwise. Each arrival
 * is an event of its own, so the broker sees one request after the other, and the model with it.
 *
 * @module
 */
import type { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type {
  Broker,
  BrokerQueue,
  Capability,
  ClaimRequest,
  NewJob,
  QueueSettings,
  Settlement,
  Watch,
} from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { Dice } from "./dice.ts";
import type { Door } from "./door.ts";
import type { LoopWatch } from "./loop_watch.ts";
import type { Machine } from "./machine.ts";
import type { FaultPlan, LinkVerb, Plan } from "./plan.ts";
import type { Fail } from "./violation.ts";

export interface LinkOptions {
  readonly base: SimulatedPlatform;
  readonly plan: Plan;
  readonly machine: Machine;
  /** Whose it is, as faults name it: `worker0`. */
  readonly owner: string;
  readonly door: Door;
  readonly watch?: LoopWatch | undefined;
  readonly trace: (line: () => string) => void;
  readonly fail: Fail;
  /** Counts the messages under way that faults made late. */
  readonly late: { count: number };
}

/** A new one each time: one that all share would remember whoever waits for it for ever. */
const never = () => new Promise<never>(() => {});

const ERRORS = [
  () => new BrokerError("simulated", "any", "The network is unreachable"),
  () => new BrokerError("simulated", "any", "It answered 429"),
  () => new BrokerError("simulated", "any", "It answered 502"),
  () => new SyntaxError("Unexpected token < in an answer"),
  () => new TypeError("an answer without results"),
  () => "a text instead of an error",
] as const;

export class SimulatedLink implements Broker {
  readonly name = "simulated";
  readonly capabilities: ReadonlySet<Capability>;
  readonly options: LinkOptions;
  readonly #dice: Dice;
  readonly #watches = new Map<() => void, string>();
  requests = 0;

  constructor(options: LinkOptions) {
    this.options = options;
    const { plan, machine, door } = options;
    this.#dice = new Dice(plan.seed, `link ${machine.label}`);
    const has = new Set(door.capabilities);
    for (const one of plan.lacks) has.delete(one);
    if (plan.waits) {
      for (const one of ["exchange", "wake"] as const) has.delete(one);
      has.add("waits");
    }
    this.capabilities = has;
    for (const fault of plan.faults) {
      if (fault.kind !== "cut" || !this.#concerns(fault)) continue;
      // What breaks is noticed some time later; news is lost meanwhile.
      options.base.setTimer(fault.fromMs - options.base.now(), () => this.#breakWatches(fault));
    }
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    return new LinkQueue(this, this.options.door.queue(name, settings), settings.requestTimeoutMs);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Keeps what ends a watch when the link breaks; answers what forgets it. */
  keepWatch(queue: string, broken: () => void): () => void {
    this.#watches.set(broken, queue);
    return () => this.#watches.delete(broken);
  }

  /** Whether news of a queue reaches its machine. */
  isWatching(queue: string): boolean {
    return [...this.#watches.values()].includes(queue);
  }

  /** How long a message takes now, one way. */
  latencyMs(): number {
    return this.#dice.whole(...this.options.plan.latencyMs);
  }

  /** Whether nothing passes now. */
  get cut(): boolean {
    const now = this.options.base.now();
    return this.options.plan.faults.some(
      (fault) => fault.kind === "cut" && this.#concerns(fault) && now >= fault.fromMs && now < fault.toMs,
    );
  }

  /**
   * Sends one request.
   *
   * @param act what it does at the broker's door.
   * @param over called when its answer reached the machine, or its failure.
   */
  send<T>(
    verb: LinkVerb,
    what: () => string,
    act: () => T | Promise<T>,
    answered?: (value: T) => void,
    failed?: (error: unknown) => void,
  ): Promise<T> {
    const { machine, watch, base, trace } = this.options;
    if (!machine.alive) return never();
    this.requests += 1;
    watch?.sent(verb);
    const nth = this.requests;
    const fault = this.#strikes(verb);
    const kind = fault?.kind;
    trace(() => `${machine.label} -> #${nth} ${verb} ${what()}${kind === undefined ? "" : ` [${kind}]`}`);
    if (kind === "throws") {
      const error = this.#dice.pick(ERRORS)();
      failed?.(error);
      throw error;
    }
    let there = machine.lagMs() + this.latencyMs();
    let back = this.latencyMs();
    if (kind === "slow") {
      there += this.#dice.whole(0, fault?.ms ?? 0);
      back += this.#dice.whole(0, fault?.ms ?? 0);
    }
    const broke = (error: unknown) => this.options.fail("threw", `the broker threw at ${verb}: ${error}`);
    return new Promise<T>((resolve, reject) => {
      const fail = (error: unknown) => {
        machine.arrives(back, () => {
          trace(() => `${machine.label} <- #${nth} ${verb} failed`);
          failed?.(error);
          reject(error);
        });
      };
      if (kind === "hangs" || kind === "cut") return;
      if (kind === "lost" || kind === "error") {
        base.setTimer(there, () => fail(this.#dice.pick(ERRORS)()));
        return;
      }
      if (kind === "refused") {
        base.setTimer(there, () => fail(new BrokerRefusedError("simulated", verb, "Keys may be evicted")));
        return;
      }
      const { late } = this.options;
      if (kind === "slow") late.count += 1;
      base.setTimer(there, () => {
        if (kind === "slow") late.count -= 1;
        Promise.resolve(act()).then((value) => {
          if (kind === "hangsAfter") return;
          if (kind === "replyLost") return fail(this.#dice.pick(ERRORS)());
          machine.arrives(back, () => {
            trace(() => `${machine.label} <- #${nth} ${verb} ${shown(value)}`);
            answered?.(value);
            resolve(value);
          });
        }, broke);
      });
      if (kind === "repeats") {
        const later = there + this.#dice.whole(1, Math.max(1, fault?.ms ?? 1));
        late.count += 1;
        base.setTimer(later, () => {
          late.count -= 1;
          trace(() => `${machine.label} ~~ #${nth} ${verb} again`);
          Promise.resolve(act()).catch(broke);
        });
      }
    });
  }

  #strikes(verb: LinkVerb): FaultPlan | undefined {
    const { base, plan } = this.options;
    const now = base.now();
    // No faults once all is calm, and none whose throws would shift the dice.
    if (now >= plan.calmMs) return undefined;
    for (const fault of plan.faults) {
      if (now < fault.fromMs || now >= fault.toMs || !this.#concerns(fault)) continue;
      if (fault.verbs !== "all" && !fault.verbs.includes(verb)) continue;
      if (this.#dice.chance(fault.chance)) return fault;
    }
    return undefined;
  }

  #concerns(fault: FaultPlan): boolean {
    return fault.whose === "all" || fault.whose === this.options.owner;
  }

  #breakWatches(fault: FaultPlan): void {
    const { machine } = this.options;
    const broken = [...this.#watches.keys()];
    this.#watches.clear();
    machine.arrives(this.#dice.whole(0, Math.max(0, fault.ms)), () => {
      for (const one of broken) one();
    });
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (name, one: unknown) =>
    ["headers", "body", "enqueuedAt", "priority"].includes(name) ? undefined : one,
  );
  return (text ?? "").slice(0, 400);
}

class LinkQueue implements BrokerQueue {
  readonly name: string;
  readonly limits: BrokerQueue["limits"];
  readonly #link: SimulatedLink;
  readonly #door: ReturnType<Door["queue"]>;
  readonly #requestTimeoutMs: number;
  readonly exchange?: NonNullable<BrokerQueue["exchange"]>;
  readonly abandon?: NonNullable<BrokerQueue["abandon"]>;
  readonly watch?: NonNullable<BrokerQueue["watch"]>;
  readonly sizes?: NonNullable<BrokerQueue["sizes"]>;

  constructor(link: SimulatedLink, door: ReturnType<Door["queue"]>, requestTimeoutMs: number) {
    const { capabilities } = link;
    this.#link = link;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#door = door;
    this.name = door.name;
    const { maxInFlight } = link.options.plan;
    this.limits = maxInFlight > 0 ? { ...door.limits, maxInFlight } : door.limits;
    const holder = link.options.machine.label;
    const { watch } = link.options;
    if (capabilities.has("exchange")) {
      this.exchange = (request) => {
        const { settle, renew, claim } = request;
        if (link.options.machine.alive) {
          if (settle.length > 0) watch?.verdictsSent(this.name, settle);
          if (claim !== undefined) watch?.claimSent(this.name, claim);
          watch?.renewSent(this.name, renew);
        }
        const noteRefusal = this.#refusals();
        return link.send(
          "exchange",
          () =>
            `settle ${verdicts(settle)} renew [${renew}] claim ${claim?.leaseId ?? "none"} x${claim?.max ?? 0}`,
          () => door.exchange(holder, request),
          (reply) => {
            watch?.renewEnded(this.name, renew);
            if (claim !== undefined && reply.claimed !== undefined) {
              watch?.claimAnswered(this.name, claim.leaseId, reply.claimed);
            }
          },
          (error) => {
            watch?.renewEnded(this.name, renew);
            if (claim !== undefined) watch?.claimFailed(this.name, claim.leaseId);
            noteRefusal(error);
          },
        );
      };
    }
    if (capabilities.has("abandon")) {
      this.abandon = (leaseIds) =>
        link.send(
          "abandon",
          () => `[${leaseIds}]`,
          () => door.abandon(leaseIds),
        );
    }
    if (capabilities.has("wake")) this.watch = (onWake, onEnd) => this.#watch(onWake, onEnd);
    if (capabilities.has("sizes"))
      this.sizes = () =>
        link.send(
          "sizes",
          () => "",
          () => door.sizes(),
        );
  }

  open(): Promise<void> {
    return this.#link.send(
      "open",
      () => this.name,
      () => this.#door.open(),
    );
  }

  enqueue(requestId: string, jobs: readonly NewJob[]): ReturnType<BrokerQueue["enqueue"]> {
    return this.#link.send(
      "enqueue",
      () => `${requestId} [${jobs.map((job) => job.id)}]`,
      () => this.#door.enqueue(requestId, jobs),
    );
  }

  claim(request: ClaimRequest): ReturnType<BrokerQueue["claim"]> {
    const { watch, machine } = this.#link.options;
    if (machine.alive) watch?.claimSent(this.name, request);
    const noteRefusal = this.#refusals();
    return this.#link.send(
      "claim",
      () => `${request.leaseId} x${request.max}`,
      () => this.#door.claim(machine.label, request, () => machine.alive),
      (reply) => watch?.claimAnswered(this.name, request.leaseId, reply),
      (error) => {
        watch?.claimFailed(this.name, request.leaseId);
        noteRefusal(error);
      },
    );
  }

  settle(settlements: readonly Settlement[]): ReturnType<BrokerQueue["settle"]> {
    const { watch, machine } = this.#link.options;
    if (machine.alive) watch?.verdictsSent(this.name, settlements);
    return this.#link.send(
      "settle",
      () => verdicts(settlements),
      () => this.#door.settle(settlements),
      undefined,
      this.#refusals(),
    );
  }

  renew(leaseIds: readonly string[]): ReturnType<BrokerQueue["renew"]> {
    const { watch, machine } = this.#link.options;
    if (machine.alive) watch?.renewSent(this.name, leaseIds);
    const noteRefusal = this.#refusals();
    return this.#link.send(
      "renew",
      () => `[${leaseIds}]`,
      () => this.#door.renew(leaseIds),
      () => watch?.renewEnded(this.name, leaseIds),
      (error) => {
        watch?.renewEnded(this.name, leaseIds);
        noteRefusal(error);
      },
    );
  }

  /** What notes a refusal, unless it comes when the request was given up already. */
  #refusals(): (error: unknown) => void {
    const { machine, watch } = this.#link.options;
    const sentAt = machine.now();
    return (error) => {
      // With timers that fire early nobody can tell from here whether it was.
      const late = machine.hasEarlyTimers || machine.now() - sentAt > this.#requestTimeoutMs - 2;
      if (error instanceof BrokerRefusedError && !late) watch?.refused(this.name);
    };
  }

  #watch(onWake: () => void, onEnd: (error: Error) => void): Promise<Watch> {
    const link = this.#link;
    const { machine } = link.options;
    return link.send(
      "watch",
      () => "",
      async () => {
        let open = true;
        const inner = await this.#door.watch(() => {
          if (!link.cut) machine.arrives(link.latencyMs(), () => open && onWake());
        });
        const forget = link.keepWatch(this.name, () => {
          if (!open) return;
          open = false;
          inner.close().catch(() => {});
          onEnd(new BrokerError("simulated", "watch", "The subscription ended"));
        });
        return {
          close: () => {
            open = false;
            forget();
            return link.send(
              "unwatch",
              () => "",
              () => inner.close(),
            );
          },
        };
      },
    );
  }
}

function verdicts(settlements: readonly Settlement[]): string {
  return `[${settlements.map((one) => `${one.delivery.id}:${one.verdict.kind}`)}]`;
}
