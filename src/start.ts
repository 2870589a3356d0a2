/**
 * A long-lived worker: starts the loops of a definition on a broker and a platform, and stops them.
 *
 * @module
 */
import type { Broker } from "./broker.ts";
import { Crew } from "./crew.ts";
import { assertDefinition, assertEngines, assertHearers } from "./deps.ts";
import type { BrokerRefusedError } from "./errors.ts";
import { type EventListener, Events } from "./events.ts";
import type { LogSink } from "./job.ts";
import { assertKnownFields } from "./known_fields.ts";
import type { Platform } from "./platform.ts";
import { withResolvers } from "./promises.ts";
import type { QueueStats } from "./stats.ts";
import type { WorkerDefinition } from "./worker.ts";

export interface WorkerDeps {
  readonly broker: Broker;
  readonly platform: Platform;
  /** Where log lines go; the definition's own `log` comes first. */
  readonly log?: LogSink | undefined;
  /** Hears events from the very first. */
  readonly on?: EventListener | undefined;
}

export interface RunningWorker {
  readonly definition: WorkerDefinition;
  /**
   * Stops gracefully: nothing is claimed or started any more, what was not started goes back uncharged, running handlers get `graceMs`, then their signal and `abortWaitMs`, and
   * all verdicts are settled. Bounded by `graceMs + abortWaitMs + settleWaitMs` and a second. May be called again, and answers when the first call does. The broker stays open.
   */
  stop(reason?: string): Promise<void>;
  /** Resolves when stopped. Rejects with `BrokerRefusedError` when the broker was found to lose jobs. */
  readonly done: Promise<void>;
  stats(): readonly QueueStats[];
  /** Hears events; answers a function that ends it. */
  on(listener: EventListener): () => void;
}

const DEPS_FIELDS: ReadonlySet<string> = new Set<keyof WorkerDeps>(["broker", "platform", "log", "on"]);

/**
 * Starts a worker.
 *
 * @throws {TypeError} when an option is unknown, or of the wrong kind.
 * @throws {RangeError} when the definition asks for what the broker cannot do; the message names the field and the mend.
 * @throws {BrokerRefusedError} when the broker could lose jobs or does not let us in.
 * @throws {BrokerError} when the broker cannot be reached.
 */
export async function startWorker(definition: WorkerDefinition, deps: WorkerDeps): Promise<RunningWorker> {
  assertDefinition("start a worker", definition);
  assertKnownFields("start a worker", "", deps, DEPS_FIELDS);
  assertEngines("start a worker", deps);
  assertHearers("start a worker", deps);
  const { broker, platform } = deps;
  const events = new Events();
  if (deps.on !== undefined) events.on(deps.on);
  const done = withResolvers<void>();
  // Whoever does not look at `done` must not be ended by an unhandled rejection.
  done.promise.catch(() => {});
  let refusal: BrokerRefusedError | undefined;
  let stopping: Promise<void> | undefined;
  const crew = await Crew.open({
    broker,
    platform,
    events,
    log: definition.log ?? deps.log,
    queues: definition.queues,
    endsAt: () => Number.POSITIVE_INFINITY,
    beforeFetch: () => {},
    refused: (error) => {
      refusal ??= error;
      platform.keepAlive(stop(`refused by the broker: ${error.message}`));
    },
  });
  const stop = (reason = "stop was called"): Promise<void> => {
    stopping ??= (async () => {
      events.emit({ type: "stopping", reason, running: crew.running, graceMs: definition.graceMs });
      await crew.end(reason, definition);
      events.emit({ type: "stopped" });
      if (refusal === undefined) done.resolve();
      else done.reject(refusal);
    })();
    return stopping;
  };
  await crew.start();
  return {
    definition,
    stop,
    done: done.promise,
    stats: () => crew.stats(),
    on: (listener) => events.on(listener),
  };
}
