/**
 * The entry points of a Worker that serves no HTTP: `scheduled` drains, and the Worker's own code enqueues. Without the HTTP app the bundle is some 13 kB smaller after gzip.
 *
 * @module
 */
import { type BudgetOptions, type DrainReport, drain } from "../../src/drain.ts";
import type { EventListener } from "../../src/events.ts";
import { Producer } from "../../src/producer.ts";
import { definitionOf } from "./definition.ts";
import { type InvocationOptions, Invocations } from "./invocations.ts";
import type { InvocationContext, ScheduledEvent } from "./types.ts";

export interface WorkersDrainOptions {
  /** The queues a cron drains. By default all of the definition. */
  readonly queues?: readonly string[];
  /** What a cron's run may spend. By default what the plan allows. */
  readonly budget?: BudgetOptions;
}

export interface CronHandlerOptions<Env> extends InvocationOptions<Env> {
  /** What `scheduled` does; `false` for no drain, where an object consumes. */
  readonly drain?: WorkersDrainOptions | false;
  /** Hears the events of a cron's run. */
  readonly on?: EventListener;
  /** Told what each cron's run reported. */
  readonly onReport?: (report: DrainReport, env: Env) => void;
}

/** What a Worker without HTTP exports by default. */
export interface CronHandler<Env> {
  scheduled(event: ScheduledEvent, env: Env, ctx: InvocationContext): Promise<void>;
  /**
   * Enqueues from the Worker's own code: gives `work` a producer for as long as it takes, and answers what it answers. Each call has a connection of its own and pokes the consumer
   * once, so what belongs to one invocation is best enqueued in one.
   */
  produce<T>(env: Env, ctx: InvocationContext, work: (producer: Producer) => Promise<T>): Promise<T>;
}

/**
 * Makes the entry points. Nothing is done when the module is loaded.
 *
 * @example
 * ```ts
 * export default createCronHandler<Env>({
 *   definition: worker,
 *   broker: (env) => new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN }),
 * });
 * ```
 */
export function createCronHandler<Env>(options: CronHandlerOptions<Env>): CronHandler<Env> {
  const invocations = new Invocations(options);
  const { log } = invocations;

  return Object.freeze<CronHandler<Env>>({
    async scheduled(event, env, ctx) {
      const platform = invocations.platform(ctx, "cron");
      await invocations.pokeConsumer(env);
      if (options.drain === false) return;
      const { queues, budget } = options.drain ?? {};
      const report = await invocations.withBroker(env, platform, (broker) =>
        drain(definitionOf(options.definition, env), {
          broker,
          platform,
          queues,
          budget,
          log,
          on: options.on,
        }),
      );
      log("info", "Drained", { cron: event.cron, ...report });
      options.onReport?.(report, env);
    },

    async produce(env, ctx, work) {
      const platform = invocations.platform(ctx, "request");
      return await invocations.withBroker(env, platform, async (broker) => {
        try {
          return await work(new Producer({ broker, platform }));
        } finally {
          // Work that failed may have enqueued something before, or have lost an answer.
          platform.keepAlive(invocations.pokeConsumer(env));
        }
      });
    },
  });
}
