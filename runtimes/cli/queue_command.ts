/**
 * Commands about one queue: `COMMAND QUEUE …`. What they share stands here once: the flags that name the queue, the exit codes, and the way to the
 * queue itself.
 *
 * @module
 */
import type { Broker, BrokerQueue } from "../../src/broker.ts";
import {
  ANY_QUEUE_FLAG,
  BROKER_FLAG,
  BROKER_HELP,
  type Command,
  defineCommand,
  FAILED_HELP,
  JSON_FLAG,
  WORKER_FLAG,
} from "./command.ts";
import { type Flags, type ParsedArgs, UsageError } from "./flags.ts";
import type { Io } from "./io.ts";
import { assertThere, defineQueue, knownWorker, offered, openQueue, withBroker } from "./queues.ts";

/** The flags of all of them. */
const QUEUE_FLAGS = {
  broker: BROKER_FLAG,
  worker: WORKER_FLAG,
  "any-queue": ANY_QUEUE_FLAG,
  json: JSON_FLAG,
} as const satisfies Flags;

/** What such a command is called with. */
export interface QueueArgs<F extends Flags> {
  readonly flags: ParsedArgs<F & typeof QUEUE_FLAGS>["flags"];
  /** What stands behind `QUEUE`. */
  readonly rest: readonly string[];
}

/** The queue that a command is about, open. */
export interface AtQueue {
  readonly queue: BrokerQueue;
  readonly io: Io;
  /** How many attempts its jobs have; `undefined` where no worker is known. */
  readonly maxAttempts: number | undefined;
  /**
   * A method of the queue that its broker may lack.
   *
   * @throws {RangeError} when it does.
   */
  able<Args extends unknown[], Result>(
    capability: string,
    method: ((...args: Args) => Promise<Result>) | undefined,
  ): (...args: Args) => Promise<Result>;
  /** Prints what was done: for people the text, for programs the fields beside the queue's name. */
  tell(text: string, fields: Readonly<Record<string, unknown>>): void;
}

export interface QueueCommand<F extends Flags> {
  readonly name: string;
  /** What may stand behind `QUEUE` any number of times, as `"ID"`. By default nothing. */
  readonly rest?: string;
  /** The flags without which it does nothing, for the usage line. */
  readonly needs?: string;
  readonly summary: string;
  readonly about: string;
  /** What its exit codes tell, where it is not what they tell of most. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Its own flags. */
  readonly flags?: F;
  /** Whether a broker's file or a queue that is not there is made; else the command ends there. */
  readonly makes?: boolean;
  /** Throws a `UsageError` for what can be refused before the broker is asked. */
  check?(args: QueueArgs<F>): void;
  /** Does it; answers the exit code. */
  run(at: AtQueue, args: QueueArgs<F>): Promise<number>;
}

/** Makes a command about one queue. */
export function defineQueueCommand<const F extends Flags = Record<never, never>>(
  command: QueueCommand<F>,
): Command {
  const { rest, needs } = command;
  const flags = { ...command.flags, ...QUEUE_FLAGS } as F & typeof QUEUE_FLAGS;
  return defineCommand({
    name: command.name,
    args: ["QUEUE", rest === undefined ? "" : `[${rest}…]`, needs ?? ""].filter(Boolean).join(" "),
    summary: command.summary,
    about: command.about,
    exits: { 0: "it is done", 1: FAILED_HELP, ...command.exits },
    notes: BROKER_HELP,
    flags,
    async run(context, { flags: given, positionals }) {
      const [name, ...others] = positionals;
      if (others.length > 0 && rest === undefined) {
        throw new UsageError("Cannot read the arguments: there are too many; name one QUEUE");
      }
      const args: QueueArgs<F> = { flags: given, rest: others };
      command.check?.(args);
      const known = await knownWorker(given, context);
      const definition = defineQueue(name, known?.definition, { found: known?.found });
      return await withBroker(context, given.broker, async (broker, spec) => {
        const makes = command.makes === true;
        if (!makes) assertThere(spec);
        const queue = await openQueue(broker, definition, known?.definition, makes);
        const handled = known?.definition.queues.find((one) => one.handler.queue === definition);
        const { maxAttempts } = handled?.options ?? {};
        return await command.run({ ...atQueue(broker, queue, context.io, given.json), maxAttempts }, args);
      });
    },
  });
}

function atQueue(broker: Broker, queue: BrokerQueue, io: Io, json: boolean): Omit<AtQueue, "maxAttempts"> {
  return {
    queue,
    io,
    able: (capability, method) => offered(broker, queue, capability, method),
    tell: (text, fields) => io.out(json ? JSON.stringify({ queue: queue.name, ...fields }) : text),
  };
}
