/**
 * Brokers that break one promise each: they show that the model would notice.
 *
 * @module
 */
import type {
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  Delivery,
  ExchangeReply,
  ExchangeRequest,
  NewJob,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../src/broker.ts";
import type { Promised } from "./violation.ts";

/** What a faulty broker does otherwise than a sound one. */
interface Twist {
  readonly enqueue?: (jobs: readonly NewJob[]) => readonly NewJob[];
  readonly claim?: (queue: BrokerQueue, request: ClaimRequest) => Promise<ClaimReply>;
  readonly deliver?: (deliveries: readonly Delivery[]) => readonly Delivery[];
  readonly settle?: (settlement: Settlement) => Settlement;
  readonly settled?: (result: SettleResult) => SettleResult;
  readonly renewed?: (result: RenewResult) => RenewResult;
  readonly due?: (nextDueMs: number | undefined) => number | undefined;
}

export interface Planted {
  readonly name: string;
  /** Any of these is what it breaks. */
  readonly breaks: readonly Promised[];
  readonly twist: () => Twist;
}

export const PLANTED: readonly Planted[] = [
  {
    name: "hands a held job out to a second holder",
    breaks: ["twoHolders", "wrongAnswer"],
    twist: () => {
      let last: Delivery | undefined;
      return {
        claim: async (queue, request) => {
          const reply = await queue.claim(request);
          if (reply.deliveries.length >= request.max || last === undefined) {
            last ??= reply.deliveries[0];
            return reply;
          }
          const again = { ...last, leaseId: request.leaseId, token: "again", attempt: last.attempt + 1 };
          last = undefined;
          return { ...reply, deliveries: [...reply.deliveries, again] };
        },
      };
    },
  },
  {
    name: "takes a verdict for done whose lease is over",
    breaks: ["lateFence"],
    twist: () => ({ settled: () => "done" }),
  },
  {
    name: "lets a late copy of a claim take jobs",
    breaks: ["wrongAnswer"],
    twist: () => {
      let copies = 0;
      return {
        claim: async (queue, request) => {
          const reply = await queue.claim(request);
          if (reply.deliveries.length > 0) return reply;
          copies += 1;
          const fresh = await queue.claim({ ...request, leaseId: `fresh-${copies}` });
          return {
            ...fresh,
            deliveries: fresh.deliveries.map((one) => ({ ...one, leaseId: request.leaseId })),
          };
        },
      };
    },
  },
  {
    name: "charges a release",
    breaks: ["wrongAttempt"],
    twist: () => {
      const released = new Map<string, number>();
      return {
        settle: (one) => {
          if (one.verdict.kind === "release") {
            released.set(one.delivery.id, (released.get(one.delivery.id) ?? 0) + 1);
          }
          return one;
        },
        deliver: (all) => all.map((one) => ({ ...one, attempt: one.attempt + (released.get(one.id) ?? 0) })),
      };
    },
  },
  {
    name: "forgets that a holder vanished",
    breaks: ["wrongSuspect"],
    twist: () => ({ deliver: (all) => all.map((one) => ({ ...one, suspect: false })) }),
  },
  {
    name: "lets a retry come at once",
    breaks: ["wrongAnswer"],
    twist: () => ({
      settle: (one) =>
        one.verdict.kind === "retry" ? { ...one, verdict: { kind: "retry", delayMs: 0 } } : one,
    }),
  },
  {
    name: "loses a job that is to be tried again",
    breaks: ["stranded", "noProgress", "lostJob", "wrongAnswer"],
    twist: () => ({
      settle: (one) => (one.verdict.kind === "retry" ? { ...one, verdict: { kind: "ack" } } : one),
    }),
  },
  {
    name: "loses dead letters",
    breaks: ["deadUnjustly"],
    twist: () => ({
      settle: (one) => (one.verdict.kind === "dead" ? { ...one, verdict: { kind: "ack" } } : one),
    }),
  },
  {
    name: "hands out the youngest first",
    breaks: ["wrongOrder"],
    twist: () => ({ deliver: (all) => [...all].reverse() }),
  },
  {
    name: "brings less than there is",
    breaks: ["stranded"],
    twist: () => ({
      claim: (queue, request) => queue.claim({ ...request, max: Math.max(1, request.max - 1) }),
    }),
  },
  {
    name: "renews what is over",
    breaks: ["wrongAnswer"],
    twist: () => ({ renewed: () => "held" }),
  },
  {
    name: "tells of the next job too late",
    breaks: ["wrongAnswer"],
    twist: () => ({ due: (ms) => (ms === undefined ? undefined : ms + 100) }),
  },
  {
    name: "takes a second job of one id in",
    breaks: ["duplicate"],
    twist: () => ({ enqueue: (jobs) => jobs.map((job) => ({ ...job, dedupe: false })) }),
  },
  {
    name: "bends bodies",
    breaks: ["bodyChanged", "threw"],
    twist: () => ({ deliver: (all) => all.map((one) => ({ ...one, body: `${one.body} ` })) }),
  },
];

/** A queue of a sound engine, twisted. */
export function twisted(queue: BrokerQueue, twist: Twist): BrokerQueue {
  const {
    deliver = (all) => all,
    settle = (one) => one,
    settled = (one) => one,
    renewed = (one) => one,
  } = twist;
  const due = twist.due ?? ((ms) => ms);
  const claim = async (request: ClaimRequest): Promise<ClaimReply> => {
    const reply = await (twist.claim?.(queue, request) ?? queue.claim(request));
    return { ...reply, deliveries: deliver(reply.deliveries), nextDueMs: due(reply.nextDueMs) };
  };
  const settleAll = async (all: readonly Settlement[]) => (await queue.settle(all.map(settle))).map(settled);
  const renew = async (leaseIds: readonly string[]) => (await queue.renew(leaseIds)).map(renewed);
  const faulty: Partial<BrokerQueue> = {
    enqueue: (requestId, jobs) => queue.enqueue(requestId, twist.enqueue?.(jobs) ?? jobs),
    claim,
    settle: settleAll,
    renew,
    exchange: async (request: ExchangeRequest): Promise<ExchangeReply> => ({
      settled: await settleAll(request.settle),
      renewed: await renew(request.renew),
      claimed: request.claim && (await claim(request.claim)),
    }),
  };
  return new Proxy(queue, {
    get: (target, name: keyof BrokerQueue) => {
      const value = faulty[name] ?? target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
