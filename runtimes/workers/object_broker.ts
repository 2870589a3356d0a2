/**
 * A Broker over queues that live in Durable Objects, for whoever enqueues, looks or drains from outside of them: a Worker's HTTP API, its crons, another object.
 *
 * @module
 */
import { checkClaim, checkEnqueue, checkMemo, checkQueue } from "../../adapters/checks.ts";
import { ALL_BUT_WAITS } from "../../adapters/offers.ts";
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
  JobState,
  NewJob,
  PeekedJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import {
  errorOf,
  OBJECT_BROKER,
  type ObjectAnswer,
  type ObjectVerb,
  objectLimits,
  type QueueObjectStub,
} from "./object_protocol.ts";
import type { ObjectNamespace } from "./types.ts";

/** An object cannot call out to those who wait for work. */
const CAPABILITIES: ReadonlySet<Capability> = ALL_BUT_WAITS.difference(new Set(["wake"]));

export interface DurableObjectBrokerOptions {
  /** The binding of the objects' class. */
  readonly namespace: ObjectNamespace;
  /** Names the object that keeps a queue. By default it has the queue's name. */
  readonly objectName?: (queue: string) => string;
}

/** Asks an object; given to each queue. */
interface Asking {
  readonly isClosed: boolean;
  ask(queue: string, settings: QueueSettings, verb: ObjectVerb, args: readonly unknown[]): Promise<unknown>;
}

/**
 * One invocation's way to queues in objects: an object a queue. Making one does no I/O.
 *
 * @example
 * ```ts
 * const broker = new DurableObjectBroker({ namespace: env.EDDY_QUEUE });
 * ```
 */
export class DurableObjectBroker implements Broker {
  readonly name = OBJECT_BROKER;
  readonly capabilities: ReadonlySet<Capability> = CAPABILITIES;
  readonly #namespace: ObjectNamespace;
  readonly #objectName: (queue: string) => string;
  #requests = 0;
  #isClosed = false;

  constructor(options: DurableObjectBrokerOptions) {
    this.#namespace = options.namespace;
    this.#objectName = options.objectName ?? ((queue) => queue);
  }

  get requests(): number {
    return this.#requests;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    checkQueue(name, settings);
    const isClosed = () => this.#isClosed;
    return new ObjectQueue(name, settings, {
      get isClosed() {
        return isClosed();
      },
      ask: (queue, given, verb, args) => this.#ask(queue, given, verb, args),
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async #ask(
    queue: string,
    settings: QueueSettings,
    verb: ObjectVerb,
    args: readonly unknown[],
  ): Promise<unknown> {
    // A stub is broken for good after some errors, so each call has one of its own; making one costs nothing.
    const namespace = this.#namespace;
    const stub = namespace.get(namespace.idFromName(this.#objectName(queue))) as QueueObjectStub;
    this.#requests += 1;
    const answer = await within(settings.requestTimeoutMs, verb, stub.eddy({ queue, settings, verb, args }));
    if (answer.ok) return answer.value;
    throw errorOf(answer.error);
  }
}

/** A call cannot be taken back, but it need not be waited for. Whatever the runtime throws is told without its text. */
function within(ms: number, verb: string, call: Promise<ObjectAnswer>): Promise<ObjectAnswer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(failed(verb, `the queue's object did not answer within ${ms} ms`)),
      ms,
    );
    call.then(
      (answer) => {
        clearTimeout(timer);
        resolve(answer);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(failed(verb, whyUnreachable(error)));
      },
    );
  });
}

function whyUnreachable(error: unknown): string {
  const { overloaded, durableObjectReset } = (error ?? {}) as Record<string, unknown>;
  if (overloaded === true) return "the queue's object is overloaded; spread the work over more queues";
  if (durableObjectReset === true) return "the queue's object was started anew; it is tried again";
  return "the queue's object cannot be reached, or broke off";
}

function failed(verb: string, why: string): BrokerError {
  return new BrokerError(OBJECT_BROKER, verb, `Cannot ${verb}: ${why}`);
}

function closed(verb: string): BrokerError {
  return failed(verb, "the broker is closed; open a new one");
}

class ObjectQueue implements BrokerQueue {
  readonly name: string;
  readonly limits: BrokerLimits;
  readonly #settings: QueueSettings;
  readonly #asking: Asking;
  #memo: string | undefined;
  #isOpen = false;

  constructor(name: string, settings: QueueSettings, asking: Asking) {
    this.name = name;
    this.limits = objectLimits(settings.leaseMs);
    // A copy of what is meant, and no more: it travels with each call.
    const { leaseMs, requestTimeoutMs, dedupeWindowMs } = settings;
    this.#settings = { leaseMs, requestTimeoutMs, dedupeWindowMs };
    this.#asking = asking;
  }

  get memo(): string | undefined {
    return this.#memo;
  }

  async open(): Promise<void> {
    if (this.#asking.isClosed) throw closed("open");
    this.#memo = (await this.#asking.ask(this.name, this.#settings, "open", [])) as string | undefined;
    this.#isOpen = true;
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    checkEnqueue(requestId, jobs, this.limits);
    return (await this.#ask("enqueue", [requestId, jobs])) as readonly Enqueued[];
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    checkClaim(request, this.limits);
    return (await this.#ask("claim", [sendable(request)])) as ClaimReply;
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return (await this.#ask("settle", [settlements.map(slim)])) as readonly SettleResult[];
  }

  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    return (await this.#ask("renew", [leaseIds])) as readonly RenewResult[];
  }

  async exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    const { settle, renew, claim, remember } = request;
    if (claim !== undefined) checkClaim(claim, this.limits);
    if (remember !== undefined) checkMemo(remember);
    const sent: ExchangeRequest = {
      settle: settle.map(slim),
      renew,
      claim: claim && sendable(claim),
      remember,
    };
    return (await this.#ask("exchange", [sent])) as ExchangeReply;
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    await this.#ask("abandon", [leaseIds]);
  }

  async sizes(): Promise<QueueSizes> {
    return (await this.#ask("sizes", [])) as QueueSizes;
  }

  async peek(state: JobState, limit: number, withBodies = true): Promise<readonly PeekedJob[]> {
    return (await this.#ask("peek", [state, limit, withBodies])) as readonly PeekedJob[];
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number> {
    return (await this.#ask("clear", [states])) as number;
  }

  async redrive(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number> {
    return (await this.#ask("redrive", [options])) as number;
  }

  async pause(): Promise<void> {
    await this.#ask("pause", []);
  }

  async resume(): Promise<void> {
    await this.#ask("resume", []);
  }

  async #ask(verb: ObjectVerb, args: readonly unknown[]): Promise<unknown> {
    if (this.#asking.isClosed) throw closed(verb);
    if (!this.#isOpen) throw failed(verb, "the queue is not open; call open() first");
    return await this.#asking.ask(this.name, this.#settings, verb, args);
  }
}

/** A settlement without the job's body and headers, which need not travel back. */
function slim({ delivery, verdict }: Settlement): Settlement {
  return { delivery: { ...delivery, body: "", headers: {} }, verdict };
}

/** A claim without its signal: an object answers at once, there is no wait to end. */
function sendable({ leaseId, max, waitMs, recall = false }: ClaimRequest): ClaimRequest {
  return { leaseId, max, waitMs, recall };
}
