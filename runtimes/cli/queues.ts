/**
 * What commands that look at queues share: finding the queue, opening it, closing the broker.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { type Broker, type BrokerQueue, isQueueName } from "../../src/broker.ts";
import { BrokerRefusedError } from "../../src/errors.ts";
import { resolveOptions } from "../../src/options.ts";
import { type QueueDefinition, queue } from "../../src/queue.ts";
import type { WorkerDefinition } from "../../src/worker.ts";
import {
  type BrokerSpec,
  chooseBroker,
  describeBroker,
  loginRefused,
  UnusableBroker,
} from "./broker_spec.ts";
import { connectBroker } from "./brokers.ts";
import type { Context } from "./command.ts";
import { UsageError } from "./flags.ts";
import { loadWorker, WORKER_FILES } from "./load_worker.ts";

/**
 * Calls `use` with the chosen broker and closes it afterwards.
 *
 * @param onWarning is told what speaks against trusting the broker with jobs, as a Redis without an append-only file. By default nobody is: a command that only
 * looks at queues or tends them trusts it with nothing.
 * @throws {UsageError} when the flag names none that can be used.
 */
export async function withBroker<T>(
  context: Context,
  flag: string | undefined,
  use: (broker: Broker, spec: BrokerSpec) => Promise<T>,
  onWarning: (text: string) => void = () => {},
): Promise<T> {
  const spec = chosen(flag, context.env);
  const broker = await connectBroker(spec, context.shell, onWarning);
  try {
    return await use(broker, spec);
  } catch (error) {
    throw spec.kind === "nats" && isLoginRefused(error)
      ? new BrokerRefusedError(error.broker, error.verb, loginRefused(spec), { cause: error })
      : error;
  } finally {
    await broker.close();
  }
}

function isLoginRefused(error: unknown): error is BrokerRefusedError {
  return (
    error instanceof BrokerRefusedError && (error.cause as { kind?: unknown } | undefined)?.kind === "login"
  );
}

function chosen(flag: string | undefined, env: Context["env"]): BrokerSpec {
  try {
    return chooseBroker(flag, env);
  } catch (error) {
    if (error instanceof UnusableBroker && error.at === "flag") throw new UsageError(error.message);
    throw error;
  }
}

/** The flags that say which queues there are. */
export interface QueueFlags {
  readonly worker: string | undefined;
  readonly "any-queue": boolean;
}

/** A worker whose queues are known. */
export interface KnownWorker {
  readonly definition: WorkerDefinition;
  /** The file it was found in, in the current folder; undefined when `--worker` named it. */
  readonly found: string | undefined;
}

/**
 * The worker that says which queues there are: the one `--worker` names, else that of the current folder; none where there is none, or with `--any-queue`.
 *
 * @throws {UsageError} when both flags are given, or the file named is not there.
 * @throws {TypeError} when it cannot be loaded.
 */
export async function knownWorker(
  { worker: named, "any-queue": anyQueue }: QueueFlags,
  context: Context,
): Promise<KnownWorker | undefined> {
  if (named !== undefined && anyQueue) {
    throw new UsageError(
      "Cannot use --any-queue with --worker: the worker says which queues there are; leave one of them out",
    );
  }
  if (named !== undefined)
    return { definition: (await loadWorker(named, context, "--worker")).definition, found: undefined };
  const found = anyQueue ? undefined : WORKER_FILES.find((file) => existsSync(file));
  if (found === undefined) return undefined;
  try {
    return { definition: (await loadWorker(found, context)).definition, found };
  } catch (error) {
    // Nobody asked for this file: it may be no worker of Eddy's at all.
    if (!(error instanceof TypeError)) throw error;
    throw new TypeError(`${error.message}, or go without it with --any-queue`, { cause: error });
  }
}

/**
 * The definition of a queue by its name: the worker's, or one made up where no worker is known.
 *
 * @param options.codec how bodies are read where no worker is known; "json" by default.
 * @param options.found the file of the current folder that the worker was found in, where nobody named it.
 * @throws {UsageError} when the worker has no such queue, or the name is malformed.
 */
export function defineQueue(
  name: string | undefined,
  worker: WorkerDefinition | undefined,
  { codec = "json", found }: { readonly codec?: "json" | "text"; readonly found?: string | undefined } = {},
): QueueDefinition {
  if (name === undefined) throw new UsageError("Cannot tell which queue: QUEUE is missing; name it");
  const known = worker?.queues.map((one) => one.handler.queue);
  const defined = known?.find((one) => one.name === name);
  if (defined !== undefined) return defined;
  if (known !== undefined) {
    const names = known.map((one) => one.name).join(", ");
    throw new UsageError(
      found === undefined
        ? `Cannot find the queue: the worker has none of that name; use one of ${names}`
        : `Cannot find the queue: ${found} has none of that name; use one of ${names}, or give --any-queue`,
    );
  }
  if (!isQueueName(name)) {
    throw new UsageError(
      'Cannot find the queue: its name is malformed; use 1 to 100 of A-Z, a-z, 0-9, "_" and "-"',
    );
  }
  return queue(name, { codec });
}

/**
 * Opens a queue of the broker.
 *
 * @param create whether it is made where it is missing.
 * @throws {QueueAbsentError} when it is not, and the broker can tell.
 */
export async function openQueue(
  broker: Broker,
  definition: QueueDefinition,
  worker: WorkerDefinition | undefined,
  create: boolean,
): Promise<BrokerQueue> {
  const known = worker?.queues.find((one) => one.handler.queue === definition);
  const settings = known?.options.settings ?? resolveOptions(definition.handle(() => {})).settings;
  const opened = broker.queue(definition.name, { ...settings, create });
  await opened.open();
  return opened;
}

/**
 * For all commands but those whose effect is to be there before the first job is: a mistyped file name must not read as an empty queue.
 *
 * @throws {UsageError} when the broker is a file that is not there.
 */
export function assertThere(spec: BrokerSpec): void {
  if (spec.kind === "sqlite" && !existsSync(spec.file)) {
    throw new UsageError(
      `Cannot find the queue: ${describeBroker(spec)} is a file that is not there; name another with --broker, or enqueue a job first`,
    );
  }
}

/** A method that the broker may lack, bound to its queue. */
export function offered<Args extends unknown[], Result>(
  broker: Broker,
  opened: BrokerQueue,
  capability: string,
  method: ((...args: Args) => Promise<Result>) | undefined,
): (...args: Args) => Promise<Result> {
  if (method !== undefined) return method.bind(opened);
  throw new RangeError(`Cannot ${capability}: the ${broker.name} broker does not offer it`);
}
