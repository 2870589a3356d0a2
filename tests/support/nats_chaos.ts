/**
 * A worker on NATS whose server is restarted and whose connection is cut and frozen while it works, and an account, kept apart, of what became of each job.
 *
 * @module
 */
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { defineWorker, Producer, queue, startWorker } from "../../src/mod.ts";
import { startNats } from "./nats_server.ts";
import { tapped } from "./nats_tap.ts";
import { WebSocketProxy } from "./ws_proxy.ts";

export interface ChaosOptions {
  readonly jobs: number;
  readonly leaseMs: number;
  readonly freezeMs: number;
  /** How long a job takes, in milliseconds; one of five hundred takes half a lease. */
  readonly jobMs: number;
  readonly say?: (line: string) => void;
}

export interface ChaosReport {
  /** Jobs that no handler finished. */
  readonly lost: readonly string[];
  /** Jobs that ran more than once. */
  readonly repeated: readonly string[];
  /** Of these, those that were not held at any disturbance, nor acked just before a SIGKILL of the server. */
  readonly unexplained: readonly string[];
  /** How long after each disturbance's end a job that was claimed after it was settled, in milliseconds. */
  readonly recoveries: readonly { readonly what: string; readonly ms: number }[];
  readonly left: number;
  readonly dead: number;
  readonly connections: number;
}

/** The server writes its consumers' state a moment after it confirmed an ack: a SIGKILL undoes acks that are younger. */
const UNDONE_MS = 1_000;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { jobs, leaseMs, freezeMs, jobMs } = options;
  const say = options.say ?? (() => {});
  const server = await startNats();
  const proxy = await WebSocketProxy.start(server.webSocketPort);
  const platform = bunPlatform();
  const work = queue("chaos", { codec: "text" });

  const direct = new NatsBroker({ url: server.url });
  const wanted = Array.from({ length: jobs }, (_, i) => `job-${i}`);
  const producer = new Producer({ broker: direct, platform });
  await producer.enqueueMany(
    work,
    wanted.map((id) => ({ id, body: id })),
  );

  const runs = new Map<string, number>();
  const finished = new Set<string>();
  const open = new Set<string>();
  const mayRepeat = new Set<string>();
  const ackedAt = new Map<string, number>();
  const recoveries: { what: string; ms: number }[] = [];
  let disturbed = false;
  /** What the next frame that holds a word is answered with: a cut. */
  let trap: { word: string; sprung: () => void } | undefined;
  let claims = 0;
  let settledUnder = 0;
  let onSettled: () => void = () => {};
  const claimOf = new Map<string, number>();
  const broker = new NatsBroker({
    url: proxy.url,
    openWebSocket: tapped((text) => {
      if (trap === undefined || !text.includes(trap.word)) return;
      const { sprung } = trap;
      trap = undefined;
      sprung();
    }),
  });
  const worker = await startWorker(
    defineWorker({
      queues: [
        work.handle(
          async (job) => {
            runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
            // Some outlast the time after which a lease is renewed.
            await Bun.sleep(Number(job.id.slice("job-".length)) % 500 === 250 ? leaseMs / 2 : jobMs);
            finished.add(job.id);
          },
          { leaseMs, prefetch: 16, concurrency: 4, maxAttempts: 50, backoff: () => 0 },
        ),
      ],
    }),
    {
      broker,
      platform,
      on: (event) => {
        if (event.type === "claimed") claims += 1;
        if (event.type === "started") {
          open.add(event.jobId);
          claimOf.set(event.jobId, claims);
          if (disturbed) mayRepeat.add(event.jobId);
        }
        if (event.type === "settled") {
          open.delete(event.jobId);
          ackedAt.set(event.jobId, performance.now());
          settledUnder = claimOf.get(event.jobId) ?? 0;
          onSettled();
        }
        if (event.type === "lost") open.delete(event.jobId);
      },
    },
  );

  const begin = () => {
    disturbed = true;
    for (const id of open) mayRepeat.add(id);
  };
  /** Resolves when a job has been settled that was claimed after now. */
  const working = async (what: string) => {
    const from = performance.now();
    const since = claims;
    await new Promise<void>((resolve) => {
      onSettled = () => {
        if (settledUnder > since) resolve();
      };
    });
    onSettled = () => {};
    recoveries.push({ what, ms: performance.now() - from });
    disturbed = false;
    say(
      `  ${what}: working again after ${Math.round(performance.now() - from)} ms; ${finished.size} of ${jobs} done`,
    );
  };
  const trapped = (word: string) =>
    new Promise<void>((resolve) => {
      trap = {
        word,
        sprung: () => {
          begin();
          proxy.cut();
          resolve();
        },
      };
    });

  for (const [what, word] of [
    ["cut during a claim", "CONSUMER.MSG.NEXT"],
    ["cut during an ack", "+ACK"],
    ["cut during a renewal", "+WPI"],
  ] as const) {
    await trapped(word);
    await working(what);
  }
  for (let n = 0; n < 5; n++) {
    await Bun.sleep(50 + 37 * n);
    begin();
    proxy.cut();
    await working("cut in the middle of a batch");
  }
  begin();
  proxy.freeze();
  await Bun.sleep(freezeMs);
  proxy.thaw();
  await working(`frozen for ${freezeMs} ms`);
  begin();
  await server.shutDown();
  await Bun.sleep(500);
  await server.restart();
  await working("server stopped and started");
  begin();
  const killedAt = performance.now();
  await server.kill();
  for (const [id, at] of ackedAt) if (killedAt - at < UNDONE_MS) mayRepeat.add(id);
  await server.restart();
  await working("server killed and started");

  const deadline = performance.now() + 120_000 + leaseMs * 3;
  const sizes = async () => {
    const view = direct.queue("chaos", { leaseMs, requestTimeoutMs: 1_000, dedupeWindowMs: 60_000 });
    return view.sizes?.() as Promise<{ ready: number; held: number; dead: number; delayed: number }>;
  };
  for (;;) {
    const now = await sizes().catch(() => undefined);
    if (finished.size === jobs && now !== undefined && now.ready + now.held + now.delayed === 0) break;
    if (performance.now() > deadline) break;
    await Bun.sleep(50);
  }
  await worker.stop();
  await broker.close();
  const end = await sizes();
  await direct.close();
  await proxy.stop();
  await server.stop();
  const repeated = wanted.filter((id) => (runs.get(id) ?? 0) > 1);
  return {
    lost: wanted.filter((id) => !finished.has(id)),
    repeated,
    unexplained: repeated.filter((id) => !mayRepeat.has(id)),
    recoveries,
    left: end.ready + end.held + end.delayed,
    dead: end.dead,
    connections: proxy.connections,
  };
}
