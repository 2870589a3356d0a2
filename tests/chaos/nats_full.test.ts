/** JetStream streams that are full, under a running worker: it says so in words, goes on, and loses nothing; what could not be written is written once there is room. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import {
  BrokerError,
  BrokerRefusedError,
  defineWorker,
  PermanentError,
  Producer,
  queue,
  startWorker,
} from "../../src/mod.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import { Operator } from "../support/nats_tap.ts";

setDefaultTimeout(40_000);

const LEASE_MS = 1_000;
const BODY = "hush-body";
const FULL = "maximum messages exceeded";

let server: NatsServer;
let operator: Operator;
beforeAll(async () => {
  server = await startNats();
  operator = await Operator.connect(server.url);
});
afterAll(async () => {
  await operator.close();
  await server.stop();
});

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 20 s in vain until ${what}`);
    await Bun.sleep(10);
  }
}

/** Sets how many messages a stream takes. */
async function limit(stream: string, max_msgs: number): Promise<void> {
  const { config } = await operator.api<{ config: Record<string, unknown> }>(`STREAM.INFO.${stream}`);
  const answer = await operator.api(`STREAM.UPDATE.${stream}`, { ...config, max_msgs, discard: "new" });
  expect(answer.error).toBeUndefined();
}

interface Seen {
  readonly runs: Map<string, number>;
  readonly errors: Error[];
}

/** Runs jobs whose stream is limited once they are in, and looks at what happened when `act` is done. */
async function withWorker(
  name: string,
  handle: (id: string, run: number, seen: Seen) => Promise<void>,
  limited: { readonly stream: string; readonly messages: number },
  jobs: number,
  act: (seen: Seen, sizes: () => Promise<{ left: number; dead: number }>) => Promise<void>,
): Promise<void> {
  const platform = bunPlatform();
  const broker = new NatsBroker({ url: server.url });
  const work = queue<string>(name);
  const seen: Seen = { runs: new Map(), errors: [] };
  const view = broker.queue(name, { leaseMs: LEASE_MS, requestTimeoutMs: 200, dedupeWindowMs: 60_000 });
  const producer = new Producer({ broker, platform });
  await producer.enqueueMany(
    work,
    Array.from({ length: jobs }, (_, n) => ({ id: `job-${n}`, body: BODY })),
  );
  await limit(limited.stream, limited.messages);
  const worker = await startWorker(
    defineWorker({
      graceMs: 1_000,
      queues: [
        work.handle(
          ({ id }) => {
            const run = (seen.runs.get(id) ?? 0) + 1;
            seen.runs.set(id, run);
            return handle(id, run, seen);
          },
          { leaseMs: LEASE_MS, requestTimeoutMs: 200, concurrency: 4, backoff: () => 0 },
        ),
      ],
    }),
    {
      broker,
      platform,
      on: (event) => {
        if (event.type === "brokerError" || event.type === "refused") seen.errors.push(event.error);
      },
    },
  );
  try {
    await act(seen, async () => {
      const sizes = await view.sizes?.();
      if (sizes === undefined) throw new Error("NATS has sizes");
      return { left: sizes.ready + sizes.delayed + sizes.held, dead: sizes.dead };
    });
    for (const error of seen.errors) {
      expect(error).toBeInstanceOf(BrokerError);
      expect(error).not.toBeInstanceOf(BrokerRefusedError);
      expect(error.message).toContain(FULL);
      expect(Bun.inspect(error)).not.toContain(BODY);
    }
  } finally {
    await worker.stop();
    await broker.close();
  }
}

test("a job whose retry finds no room waits for it, and is finished when the others have made some", async () => {
  await withWorker(
    "full",
    async (id, run, { errors }) => {
      if (id === "job-0" && run === 1) throw new Error("again");
      if (id !== "job-0") await until("the retry is refused", () => errors.length > 0);
    },
    { stream: "EDDY_JOBS_full", messages: 4 },
    4,
    async ({ runs }, sizes) => {
      await until("nothing is left", async () => (await sizes()).left === 0);
      expect(Object.fromEntries(runs)).toEqual({ "job-0": 2, "job-1": 1, "job-2": 1, "job-3": 1 });
      expect((await sizes()).dead).toBe(0);
    },
  );
});

test("jobs whose dead letter finds no room stay in the queue, and are dead letters once there is", async () => {
  await withWorker(
    "dying",
    async () => {
      throw new PermanentError("no use");
    },
    { stream: "EDDY_DEAD_dying", messages: 2 },
    5,
    async ({ errors }, sizes) => {
      await until("a dead letter is refused", () => errors.length > 0);
      expect(await sizes()).toEqual({ left: 3, dead: 2 });
      await limit("EDDY_DEAD_dying", -1);
      await until("nothing is left", async () => (await sizes()).left === 0);
      expect(await sizes()).toEqual({ left: 0, dead: 5 });
    },
  );
});
