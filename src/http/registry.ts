/**
 * The queues that an HTTP app serves.
 *
 * @module
 */
import { type Broker, type BrokerQueue, isQueueName } from "../broker.ts";
import { resolveOptions } from "../options.ts";
import { type QueueDefinition, queue } from "../queue.ts";
import type { WorkerDefinition } from "../worker.ts";
import { Refusal } from "./answers.ts";

/**
 * The queues of a worker's definition, each opened once, when it is first asked for. Without a definition every well-formed name is a queue, of JSON
 * bodies that nothing checks further.
 */
export class QueueRegistry {
  readonly #definition: WorkerDefinition | undefined;
  readonly #broker: Broker;
  readonly #opened = new Map<string, Promise<BrokerQueue>>();

  constructor(definition: WorkerDefinition | undefined, broker: Broker) {
    this.#definition = definition;
    this.#broker = broker;
  }

  /** The known queues' names, in the definition's order. */
  get names(): readonly string[] {
    return this.#definition?.queues.map((known) => known.handler.queue.name) ?? [];
  }

  /**
   * A queue's name and type.
   *
   * @throws {Refusal} 404, naming the known ones.
   */
  define(name: string): QueueDefinition {
    const known = this.#definition?.queues.find((one) => one.handler.queue.name === name);
    if (known !== undefined) return known.handler.queue;
    if (this.#definition !== undefined) {
      throw new Refusal(404, "unknown-queue", `Cannot find the queue: use one of ${this.names.join(", ")}`, {
        queues: this.names,
      });
    }
    if (isQueueName(name)) return queue(name);
    throw new Refusal(
      404,
      "unknown-queue",
      'Cannot find the queue: its name is malformed; use 1 to 100 of A-Z, a-z, 0-9, "_" and "-"',
    );
  }

  /**
   * The broker's side of a queue, open.
   *
   * @throws {Refusal} 404 for an unknown one.
   * @throws {BrokerError} when it cannot be opened; the next call tries again.
   */
  async open(name: string): Promise<BrokerQueue> {
    const definition = this.define(name);
    const before = this.#opened.get(name);
    if (before !== undefined) return await before;
    const opening = this.#open(definition);
    this.#opened.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      this.#opened.delete(name);
      throw error;
    }
  }

  async #open(definition: QueueDefinition): Promise<BrokerQueue> {
    const known = this.#definition?.queues.find((one) => one.handler.queue === definition);
    const settings = known?.options.settings ?? resolveOptions(definition.handle(() => {})).settings;
    const opened = this.#broker.queue(definition.name, settings);
    await opened.open();
    return opened;
  }
}
