/**
 * How a worker sizes its claims: three backlogs, one slot, and what each claim brought. `npm run demo` runs it.
 *
 * @module
 */
import {
  type Broker,
  defineWorker,
  type Platform,
  Producer,
  queue,
  resolveOptions,
  startWorker,
} from "../src/mod.ts";

export interface DemoDeps {
  readonly broker: Broker;
  readonly platform: Platform;
  readonly print: (line: string) => void;
  /** Ends the demo early; its queue is cleared all the same. */
  readonly signal?: AbortSignal;
}

/** One backlog and how it is worked off. */
export interface Phase {
  readonly name: string;
  readonly title: string;
  readonly jobs: number;
  readonly jobMs: number;
  readonly prefetch: 1 | "auto";
}

/** What the claims of a phase brought. */
export interface PhaseResult {
  /** How many jobs each claim brought, in the order in which they ran. */
  readonly sizes: readonly number[];
  /** What the worker measured a job to take, in milliseconds. */
  readonly averageMs: number | undefined;
}

/** Something that must hold of a phase. */
export interface Check {
  readonly text: string;
  readonly holds: boolean;
}

export const PHASES = {
  a: { name: "single", title: "a) prefetch 1: 40 jobs of 10 ms", jobs: 40, jobMs: 10, prefetch: 1 },
  b: {
    name: "backlog",
    title: "b) prefetch auto: a backlog of 200 jobs of 10 ms",
    jobs: 200,
    jobMs: 10,
    prefetch: "auto",
  },
  c: { name: "long", title: "c) prefetch auto: 10 jobs of 300 ms", jobs: 10, jobMs: 300, prefetch: "auto" },
} as const satisfies Record<string, Phase>;

/** How long a phase may take, in milliseconds. */
const PHASE_LIMIT_MS = 60_000;

/**
 * Runs the three phases, prints what came of them; answers whether every check held.
 *
 * @throws the signal's reason when it is aborted, and as {@linkcode runPhase}.
 */
export async function prefetchDemo(deps: DemoDeps): Promise<boolean> {
  const checks: Check[] = [];
  for (const phase of Object.values(PHASES)) {
    deps.print(`\n${phase.title}, one slot`);
    const result = await runPhase(phase, deps);
    const held = checksOf(phase, result);
    for (const line of [...describe(result), ...held.map(checkLine)]) deps.print(`   ${line}`);
    checks.push(...held);
  }
  const failed = checks.filter((check) => !check.holds).length;
  deps.print(
    failed === 0 ? `\nPASS: ${checks.length} checks` : `\nFAIL: ${failed} of ${checks.length} checks`,
  );
  return failed === 0;
}

/**
 * Fills a fresh queue, then lets one worker empty it. The queue is left without jobs.
 *
 * @throws {RangeError} when the jobs are not done within a minute.
 * @throws the signal's reason when it is aborted.
 */
export async function runPhase(phase: Phase, { broker, platform, signal }: DemoDeps): Promise<PhaseResult> {
  const probes = queue(
    `demo-${phase.name}-${platform
      .randomId()
      .slice(0, 40)
      .replace(/[^A-Za-z0-9]/g, "")}`,
  );
  const leases: string[] = [];
  const handler = probes.handle(
    async (job) => {
      leases.push(job.leaseId);
      await new Promise<void>((resolve) => platform.setTimer(phase.jobMs, resolve));
    },
    { concurrency: 1, prefetch: phase.prefetch },
  );
  const opened = broker.queue(probes.name, resolveOptions(handler).settings);
  await opened.open();
  try {
    // The whole backlog first, so that every claim finds as much as it asks for.
    const producer = new Producer({ broker, platform });
    await producer.enqueueMany(
      probes,
      Array.from({ length: phase.jobs }, (_, seq) => ({ body: { seq } })),
    );
    const settled = countdown(phase.jobs, platform, signal);
    const worker = await startWorker(defineWorker({ queues: [handler] }), {
      broker,
      platform,
      on: (event) => {
        if (event.type === "settled" && event.verdict === "ack") settled.one();
      },
    });
    try {
      await Promise.race([settled.all, worker.done]);
      return { sizes: sizesOf(leases), averageMs: worker.stats()[0]?.averageMs };
    } finally {
      await worker.stop("the phase is over");
    }
  } finally {
    await opened.clear?.(["ready", "delayed", "dead"]);
  }
}

/** Resolves `all` once `one` was called `count` times; rejects it when that takes too long or the signal is aborted. */
function countdown(
  count: number,
  platform: Platform,
  signal: AbortSignal | undefined,
): { readonly all: Promise<void>; one(): void } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const cancel = platform.setTimer(PHASE_LIMIT_MS, () => {
    reject(
      new RangeError(
        `Cannot finish the demo: jobs are left after ${PHASE_LIMIT_MS} ms; see what the broker is doing`,
      ),
    );
  });
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  const over = () => {
    cancel();
    signal?.removeEventListener("abort", onAbort);
  };
  // Whoever waits hears of it; this only tidies up.
  promise.then(over, over);
  let left = count;
  return {
    all: promise,
    one() {
      left -= 1;
      if (left === 0) resolve();
    },
  };
}

/** How many jobs came under each lease, in the order of their first jobs: one claim is one lease. */
export function sizesOf(leases: readonly string[]): number[] {
  const sizes = new Map<string, number>();
  for (const lease of leases) sizes.set(lease, (sizes.get(lease) ?? 0) + 1);
  return [...sizes.values()];
}

/** What must hold of a phase. */
export function checksOf(phase: Phase, { sizes }: PhaseResult): Check[] {
  const perClaim = phase.jobs / sizes.length;
  switch (phase.name) {
    case PHASES.a.name:
      return [{ text: "each claim brought one job", holds: sizes.length === phase.jobs }];
    case PHASES.b.name: {
      const first = sizes.slice(0, 8).join(" ");
      const steady = sizes.every((size, i) => size <= 16 && (i === 0 || size <= 2 * sizes[i - 1]!));
      return [
        { text: `two full claims, then twice as many: ${first}`, holds: first === "1 1 2 2 4 4 8 8" },
        { text: "no claim brought more than twice what the one before did, nor more than 16", holds: steady },
        {
          text: `a claim brought ${perClaim.toFixed(1)} jobs on average (3 or more), ${sizes.length} claims in all (24 at most)`,
          holds: perClaim >= 3 && sizes.length <= 24,
        },
      ];
    }
    default:
      return [
        {
          text: "each claim brought one job, for one alone is more than 250 ms of work",
          holds: sizes.length === phase.jobs,
        },
      ];
  }
}

function describe({ sizes, averageMs }: PhaseResult): string[] {
  const jobs = sizes.reduce((sum, size) => sum + size, 0);
  const lines = [
    `jobs            ${jobs}`,
    `claims          ${sizes.length}`,
    `jobs per claim  ${(jobs / sizes.length).toFixed(1)}`,
    `batch sizes     ${runLengths(sizes)}`,
  ];
  if (averageMs !== undefined) {
    const fits = Math.max(1, Math.floor(250 / averageMs));
    lines.push(`job time        ${averageMs.toFixed(1)} ms measured, so 250 ms hold ${fits}`);
  }
  return lines;
}

/** Equal neighbours together: `1 1 2 16 ×3`. Pairs stay as they are, they read better. */
export function runLengths(sizes: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < sizes.length; ) {
    let end = i;
    while (end < sizes.length && sizes[end] === sizes[i]) end += 1;
    const count = end - i;
    parts.push(count > 2 ? `${sizes[i]} ×${count}` : Array.from({ length: count }, () => sizes[i]).join(" "));
    i = end;
  }
  return parts.join(" ");
}

function checkLine(check: Check): string {
  return `${check.holds ? "ok" : "FAILED"}: ${check.text}`;
}
