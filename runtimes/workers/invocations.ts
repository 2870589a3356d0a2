/**
 * What each invocation of a Worker is given: a platform, and a broker connection that ends with it, for sockets and requests belong to one invocation.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import type { ConsumerObjectStub } from "./consumer_object.ts";
import type { DefinitionSource } from "./definition.ts";
import type { WorkersPlan, WorkersTrigger } from "./limits.ts";
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
  /** The consumer's object, if there is one: poked after an enqueue by HTTP or `produce`, and made sure of by each cron. */
  readonly consumer?: (env: Env) => ConsumerObjectStub;
  /** Where log lines go. By default the console, as JSON. */
  readonly log?: LogSink;
}

/** The invocations of one Worker. Making it does no I/O. */
export class Invocations<Env> {
  readonly log: LogSink;
  readonly #options: InvocationOptions<Env>;

  constructor(options: InvocationOptions<Env>) {
    this.log = options.log ?? consoleLog;
    this.#options = options;
  }

  platform(ctx: InvocationContext, trigger: WorkersTrigger): Platform {
    const { plan, limits } = this.#options;
    return workersPlatform({ ctx, trigger, plan, limits });
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

  /** Makes sure that the consumer is on, if there is one. */
  async startConsumer(env: Env): Promise<void> {
    await this.#options.consumer?.(env).start();
  }

  /** Tells the consumer of new work, if there is one. Should it not arrive, the consumer looks by itself before long. */
  pokeConsumer(env: Env, platform: Platform): void {
    if (this.#options.consumer !== undefined) platform.keepAlive(this.#options.consumer(env).poke());
  }
}
