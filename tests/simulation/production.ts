/**
 * The producer of a simulated world: enqueues the plan's jobs over a link of its own, again where the plan says so or where the answer was lost.
 *
 * @module
 */
import { Producer } from "../../src/producer.ts";
import { type QueueDefinition, queue } from "../../src/queue.ts";
import { Dice } from "./dice.ts";
import type { SimBody } from "./handlers.ts";
import { SimulatedLink } from "./link.ts";
import { Machine } from "./machine.ts";
import type { QueueModel } from "./model.ts";
import type { JobPlan, QueuePlan } from "./plan.ts";
import { DEDUPE_WINDOW_MS, type World } from "./world.ts";

/** A job of an id of its own is enqueued again, so much later, until that is answered. */
const AGAIN_MS = 700;

export class Production {
  readonly dice: Dice;
  readonly #world: World;
  readonly #producer: Producer;
  readonly #definitions: readonly QueueDefinition<SimBody>[];

  constructor(world: World) {
    const { base, plan, door, trace, fail } = world;
    this.#world = world;
    this.dice = new Dice(plan.seed, "production");
    const machine = new Machine(base, "producer", plan.seed, { skewMs: 0, driftPpm: 0, early: 0 });
    const link = new SimulatedLink({
      base,
      plan,
      machine,
      owner: "producer",
      door,
      trace,
      fail,
      late: world.late,
    });
    this.#producer = new Producer({ broker: link, platform: machine, requestTimeoutMs: 1_000 });
    this.#definitions = plan.queues.map((one) =>
      queue<SimBody>(one.name, { dedupeWindowMs: DEDUPE_WINDOW_MS }),
    );
  }

  /** Enqueues all jobs of the plan at their times. */
  async all(): Promise<void> {
    const { base, plan } = this.#world;
    await Promise.all(
      plan.jobs.map(async (job, index) => {
        await base.sleep(job.atMs);
        const { againAfterMs } = job;
        const again = againAfterMs === undefined ? undefined : this.#later(job, index, againAfterMs);
        await this.#enqueue(job, index);
        await again;
      }),
    );
  }

  /** Enqueues a job that is done at once. */
  async probe(queue: QueuePlan, index: number): Promise<void> {
    const { base, trace } = this.#world;
    trace(() => `a job comes to idle ${queue.name}`);
    const definition = this.#definitions[index] as QueueDefinition<SimBody>;
    await this.#producer.enqueue(definition, { job: -1 });
    await base.sleep(0);
  }

  async #later(job: JobPlan, index: number, ms: number): Promise<void> {
    await this.#world.base.sleep(ms);
    await this.#enqueue(job, index);
  }

  async #enqueue(job: JobPlan, index: number): Promise<void> {
    const { base, models, fail, trace, plan } = this.#world;
    const definition = this.#definitions[job.queue] as QueueDefinition<SimBody>;
    const model = models.get((plan.queues[job.queue] as QueuePlan).name) as QueueModel;
    const { priority, delayMs } = job;
    for (;;) {
      try {
        const { id } = await this.#producer.enqueue(
          definition,
          { job: index },
          { priority, delayMs, ...(job.ownId ? { id: `j${index}` } : {}) },
        );
        if (!model.jobs.has(id)) fail("notAccepted", `job ${id} was answered as accepted and is not there`);
        return;
      } catch (error) {
        trace(() => `job ${index} was not accepted: ${error}`);
        if (!job.ownId) return;
        await base.sleep(AGAIN_MS);
      }
    }
  }
}
