/**
 * What each invocation of a Worker is given: a platform, and a broker connection that ends with it, for sockets and requests belong to one invocation.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import { noError } from "../../src/thrown.ts";
import type { ConsumerObjectStub } from "./consumer_object.ts";
import type { DefinitionSource } from "./definition.ts";
import { type WorkersPlan, type WorkersTrigger, workersLimits } from "./limits.ts";
import { consoleLog } from "./log.ts";
import { workersPlatform } from "./platform.ts";
import type { InvocationContext } from "./types.ts";

export interface InvocationOptions<Env> {
  readonly definition: DefinitionSource<Env>;
  /** Makes the connection of one invocation, which closes it: `(env) => new RedisBroker({ url: env.…, token: env.… })`. */
  readonly broker: (env: Env, platform: Platform) => Broker | Promise<Broker>;
  /** The account's plan. Default `"free"`: a run that keeps its limits keeps the paid plan's. */
  readonly plan?: WorkersPlan;
  /** Replaces any of the limits of an invocation. */
  readonly limits?: Partial<PlatformLimits>;
  /**
   * The consumer's object, if there is one. It is poked, which starts one that never was, by each request that brings work, each `produce` and each cron: one call of an object, and
   * so one request fewer that the invocation may spend on anything else.
   */
  readonly consumer?: (env: Env) => ConsumerObjectStub;
  /** Where log lines go. By default the console, as JSON. */
  readonly log?: LogSink;
}

/** Calls of objects are requests of the invocation, and there is one: the poke. */
const POKE_REQUESTS = 1;

/** The invocations of one Worker. Making it does no I/O. */
export class Invocations<Env> {
  readonly log: LogSink;
  readonly #options: InvocationOptions<Env>;

  constructor(options: InvocationOptions<Env>) {
    this.log = options.log ?? consoleLog;
    this.#options = options;
  }

  platform(ctx: InvocationContext, trigger: WorkersTrigger): Platform {
    const { plan = "free", limits, consumer } = this.#options;
    if (consumer === undefined) return workersPlatform({ ctx, trigger, plan, limits });
    const { requests } = workersLimits(plan, trigger, limits);
    return workersPlatform({
      ctx,
      trigger,
      plan,
      limits: { ...limits, requests: Math.max(1, requests - POKE_REQUESTS) },
    });
  }

  /** Gives `work` a connection for as long as it takes, and answers what it answers. */
  async withBroker<T>(env: Env, platform: Platform, work: (broker: Broker) => Promise<T>): Promise<T> {
    const broker = await this.#options.broker(env, platform);
    try {
      return await work(broker);
    } finally {
      platform.keepAlive(broker.close());
    }
  }

  /** Tells the consumer of new work, if there is one. Never rejects: should it not arrive, that is logged, and the next one does as well. */
  async pokeConsumer(env: Env): Promise<void> {
    try {
      await this.#options.consumer?.(env).poke();
    } catch (error) {
      this.log("error", "The consumer could not be poked: until it is, its jobs may have to wait", {
        error: error instanceof Error ? error.message : noError(error),
      });
    }
  }
}
