/**
 * A queue that lives in a Durable Object: the broker, and the worker beside it. A Worker needs no server at all.
 *
 * **Where handlers run: in the object**, beside the jobs.
 * - A claim, a renewal, a settlement are calls within one thread. None costs a request, none gets lost on the way, and the whole budget of an
 *   event (50 or 10,000 requests, 15 minutes) is the handlers' own. Run in the Worker, each batch would be a call to the object, which waits, and is
 *   paid, for as long as the Worker works.
 * - Input gates: SQL is synchronous and finishes within its turn, so while a handler waits for something, enqueues get in. Between two claims
 *   others have a turn in any case, and no job starts before its claim is on disk (`draining_broker.ts`).
 * - Output gates: a handler's requests leave the object only after its claim is on disk. So no effect of a job precedes the record that it was tried.
 * - Isolation: one object a queue, so a queue's handlers hold up no other queue. Within one, all share a thread and 128 MB: a handler that computes
 *   for long keeps enqueues of its queue waiting, and one that takes the object down takes what runs beside it along; the leases of those jobs run out and they run
 *   again, a job that does it each time alone and in the end as a dead letter. Jobs themselves are on disk and do not notice.
 *
 * For handlers that compute much, or that must not share an object with their queue, leave `definition` out here, and drain from outside over a
 * `DurableObjectBroker`: in a cron, a Worker's `POST /v1/drain`, or a consumer's object.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { type BudgetOptions, drain } from "../../src/drain.ts";
import type { EventListener } from "../../src/events.ts";
import type { LogSink } from "../../src/job.ts";
import type { PlatformLimits } from "../../src/platform.ts";
import type { WorkerDefinition } from "../../src/worker.ts";
import { type DefinitionSource, definitionOf } from "./definition.ts";
import { DrainingBroker } from "./draining_broker.ts";
import type { WorkersPlan } from "./limits.ts";
import { consoleLog } from "./log.ts";
import { ObjectAlarm } from "./object_alarm.ts";
import type { ObjectAnswer, ObjectCall, QueueObjectStub } from "./object_protocol.ts";
import { ObjectQueues } from "./object_queues.ts";
import { ObjectRuns } from "./object_runs.ts";
import { workersPlatform } from "./platform.ts";
import type { ObjectContext } from "./types.ts";

export interface QueueObjectOptions<Env> {
  /** The worker whose handlers run in the object. Without it the object only keeps jobs. */
  readonly definition?: DefinitionSource<Env>;
  /** The account's plan. Default `"free"`. */
  readonly plan?: WorkersPlan;
  /** Replaces any of the limits of an event. */
  readonly limits?: Partial<PlatformLimits>;
  /** What one event may spend. By default what the plan allows. */
  readonly budget?: BudgetOptions;
  /** Where log lines go. By default the console, as JSON. */
  readonly log?: LogSink;
  /** Hears the events of every run. */
  readonly on?: EventListener;
}

/** The class of a queue's object. */
export type QueueObjectClass<Env> = new (
  ctx: ObjectContext,
  env: Env,
) => QueueObjectStub & { alarm(): Promise<void> };

/**
 * Makes the class of a queue's object, to be exported by the Worker and named in `new_sqlite_classes`.
 *
 * @example
 * ```ts
 * export class EddyQueue extends queueObject<Env>({ definition: worker }) {}
 * ```
 */
export function queueObject<Env>(options: QueueObjectOptions<Env> = {}): QueueObjectClass<Env> {
  return class extends DurableObject<Env> {
    readonly #queues: ObjectQueues;
    readonly #runs: ObjectRuns | undefined;

    constructor(ctx: ObjectContext, env: Env) {
      super(ctx, env);
      this.#queues = new ObjectQueues(ctx.storage, () => Date.now());
      if (options.definition !== undefined) {
        this.#runs = makeRuns(options, definitionOf(options.definition, env), ctx, this.#queues);
      }
    }

    /** Answers a call from a `DurableObjectBroker`. Never rejects. */
    async eddy(call: ObjectCall): Promise<ObjectAnswer> {
      const answer = await this.#queues.answer(call);
      this.#runs?.touched();
      return answer;
    }

    /** Called by the runtime when work is due. */
    async alarm(): Promise<void> {
      await this.#runs?.alarmed();
    }
  };
}

function makeRuns<Env>(
  options: QueueObjectOptions<Env>,
  definition: WorkerDefinition,
  ctx: ObjectContext,
  queues: ObjectQueues,
): ObjectRuns {
  const { plan, limits, budget, on } = options;
  const log = options.log ?? consoleLog;
  const platform = workersPlatform({ ctx, plan, trigger: "alarm", limits });
  const broker = new DrainingBroker(queues.broker, () => ctx.storage.sync());
  const names = definition.queues.map((one) => one.handler.queue.name);
  const failed = (message: string, fields: Record<string, unknown>, error: unknown) =>
    log("error", message, { ...fields, error: error instanceof Error ? error.message : typeof error });
  return new ObjectRuns({
    alarm: new ObjectAlarm(ctx.storage, (error) => failed("The alarm could not be set", {}, error)),
    wallNow: () => Date.now(),
    dueMs: () => queues.dueMs(names),
    drain: (due) => drain(definition, { broker, platform, queues: due, budget, log, on }),
    failed: (error, retryInMs) => failed("A run failed", { retryInMs }, error),
  });
}
