/**
 * A consumer that lives in a Durable Object, for queues of a server (Redis, NATS): an alarm, a drain, the next alarm. While there is work, each drain follows the
 * last at once, with the budget of a new event; an idle queue is looked at in growing gaps, and between two looks the object may sleep, which costs
 * nothing. So consumption is near-continuous, where a cron comes once a minute at best.
 *
 * The first enqueue by the Worker, or its first cron, starts it. It goes on for ever then, through broker failures, too, and through the object being ended and started anew: the next alarm is set before a
 * drain begins.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import type { Broker } from "../../src/broker.ts";
import { type BudgetOptions, type DrainReport, drain } from "../../src/drain.ts";
import type { EventListener } from "../../src/events.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import { noError } from "../../src/thrown.ts";
import { type DefinitionSource, definitionOf } from "./definition.ts";
import { type GapOptions, type Gaps, gapAfter, goesOn, growingGaps } from "./gaps.ts";
import type { WorkersPlan } from "./limits.ts";
import { consoleLog } from "./log.ts";
import { ObjectAlarm } from "./object_alarm.ts";
import { workersPlatform } from "./platform.ts";
import type { ObjectContext } from "./types.ts";

export interface ConsumerObjectOptions<Env> {
  readonly definition: DefinitionSource<Env>;
  /** Makes the connection of one drain, which closes it. */
  readonly broker: (env: Env, platform: Platform) => Broker | Promise<Broker>;
  /** The queues to drain. By default all of the definition. */
  readonly queues?: readonly string[];
  /** The account's plan. Default `"free"`. */
  readonly plan?: WorkersPlan;
  /** Replaces any of the limits of an event. */
  readonly limits?: Partial<PlatformLimits>;
  /** What one drain may spend. By default what the plan allows an event. */
  readonly budget?: BudgetOptions;
  /** The gaps between looks at an idle queue, in milliseconds. Default 250 growing to 5,000. A call of `poke` ends a gap. */
  readonly idleMs?: GapOptions;
  /** Where log lines go. By default the console, as JSON. */
  readonly log?: LogSink;
  /** Hears the events of every drain. */
  readonly on?: EventListener;
}

/** What a consumer's object tells of itself. */
export interface ConsumerStatus {
  /** Whether it was started and not stopped. */
  readonly on: boolean;
  /** Whether a drain is under way. */
  readonly draining: boolean;
  /** The last drain's report, since the object was last made. */
  readonly lastReport: DrainReport | null;
  /** Why the last drain failed, if it did. */
  readonly lastError: string | null;
}

/** A consumer's object, as its stub shows it. */
export interface ConsumerObjectStub {
  /** Begins to consume, or makes sure that it does, after a `stop` too. Survives restarts. May be called as often as one likes. */
  start(): Promise<void>;
  /** Ends consuming, until `start` is called: what runs is given its grace time, and is settled. */
  stop(): Promise<void>;
  /** There is new work: begins to consume, or ends the gap between two looks. Does nothing to a consumer that was stopped. */
  poke(): Promise<void>;
  status(): Promise<ConsumerStatus>;
}

/** The class of a consumer's object. */
export type ConsumerObjectClass<Env> = new (
  ctx: ObjectContext,
  env: Env,
) => ConsumerObjectStub & { alarm(): Promise<void> };

/** The storage's key for whether it is on: `false` once it was stopped, nothing before it was started. */
const ON = "eddy:on";
/** How soon an object that was ended in the middle of a drain is woken. While its alarm is being handled the next one waits, so this may be short. */
const BACKSTOP_MS = 1_000;
const FAILURE_GAPS: GapOptions = { min: 1_000, max: 60_000 };

/**
 * Makes the class of a consumer's object, to be exported by the Worker and named in `new_sqlite_classes`.
 *
 * @example
 * ```ts
 * export class EddyConsumer extends consumerObject<Env>({ definition: worker, broker: (env) => new RedisBroker({ … }) }) {}
 * ```
 */
export function consumerObject<Env>(options: ConsumerObjectOptions<Env>): ConsumerObjectClass<Env> {
  return class extends DurableObject<Env> {
    readonly #storage: ObjectContext["storage"];
    readonly #platform: Platform;
    readonly #alarm: ObjectAlarm;
    readonly #idle: Gaps;
    readonly #failing: Gaps;
    readonly #log: LogSink;
    #stopping = new AbortController();
    #draining: Promise<number> | undefined;
    #poked = false;
    #lastReport: DrainReport | null = null;
    #lastError: string | null = null;

    constructor(ctx: ObjectContext, env: Env) {
      super(ctx, env);
      const { plan, limits } = options;
      this.#storage = ctx.storage;
      this.#log = options.log ?? consoleLog;
      this.#platform = workersPlatform({ ctx, plan, trigger: "alarm", limits });
      this.#idle = growingGaps(options.idleMs ?? {});
      this.#failing = growingGaps(FAILURE_GAPS);
      this.#alarm = new ObjectAlarm(ctx.storage, (error) =>
        this.#log("error", "The alarm could not be set", { error: textOf(error) }),
      );
    }

    async start(): Promise<void> {
      if (this.#stopping.signal.aborted) this.#stopping = new AbortController();
      if ((await this.#storage.get(ON)) !== true) await this.#storage.put(ON, true);
      // An alarm that waits is left alone: it may be a gap that was earned. One that got lost is what this call is for.
      if (this.#draining === undefined && (await this.#storage.getAlarm()) === null) {
        this.#alarm.set(Date.now());
      }
    }

    async stop(): Promise<void> {
      await this.#storage.put(ON, false);
      this.#stopping.abort();
      await this.#draining?.catch(() => {});
      await this.#storage.deleteAlarm();
      this.#alarm.fired();
    }

    async poke(): Promise<void> {
      const on = await this.#storage.get(ON);
      if (on === false) return;
      if (on !== true) await this.#storage.put(ON, true);
      this.#poked = true;
      if (this.#draining === undefined) this.#alarm.setBy(Date.now());
    }

    async status(): Promise<ConsumerStatus> {
      return {
        on: (await this.#storage.get(ON)) === true,
        draining: this.#draining !== undefined,
        lastReport: this.#lastReport,
        lastError: this.#lastError,
      };
    }

    async alarm(): Promise<void> {
      this.#alarm.fired();
      if ((await this.#storage.get(ON)) !== true || this.#draining !== undefined) return;
      this.#alarm.set(Date.now() + BACKSTOP_MS);
      this.#draining = this.#drain();
      const nextInMs = await this.#draining;
      this.#draining = undefined;
      if (this.#stopping.signal.aborted) return;
      this.#alarm.set(Date.now() + nextInMs);
    }

    /** Drains once; answers after what gap to do it again. Never rejects. */
    async #drain(): Promise<number> {
      const { queues, budget, on } = options;
      this.#poked = false;
      try {
        const definition = definitionOf(options.definition, this.env);
        const broker = await options.broker(this.env, this.#platform);
        try {
          this.#lastReport = await drain(definition, {
            broker,
            platform: this.#platform,
            queues,
            budget,
            signal: this.#stopping.signal,
            log: this.#log,
            on,
          });
        } finally {
          await broker.close();
        }
        this.#lastError = null;
        this.#failing.begin();
        return this.#gapAfter(this.#lastReport);
      } catch (error) {
        this.#lastError = textOf(error);
        const gapMs = this.#failing.next(this.#platform.random());
        this.#log("error", "A drain failed", { error: this.#lastError, retryInMs: gapMs });
        return gapMs;
      }
    }

    #gapAfter(report: DrainReport): number {
      if (goesOn(report)) return 0;
      if (report.jobs > 0) this.#idle.begin();
      return this.#poked ? 0 : gapAfter(report, this.#idle.next(this.#platform.random()));
    }
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : noError(error);
}
