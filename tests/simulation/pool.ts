/**
 * Plays many seeds on several processes.
 *
 * @module
 */
import { join } from "node:path";
import type { EngineName } from "./engines.ts";

/** What came of one seed. */
export interface SeedResult {
  readonly seed: number;
  /** Simulated time, in milliseconds. */
  readonly ms: number;
  /** Handlers started and requests sent by workers and drains. */
  readonly starts: number;
  readonly requests: number;
  readonly promised?: string;
  readonly what?: string;
}

export interface PoolOptions {
  readonly from: number;
  readonly count: number;
  readonly processes: number;
  /** Default `"memory"`. */
  readonly engine?: EngineName;
  /** A world that takes so long, in real milliseconds, goes round in a circle. */
  readonly stallMs?: number;
  readonly heard?: (result: SeedResult) => void;
}

export interface PoolReport {
  readonly played: number;
  readonly failed: readonly SeedResult[];
  readonly starts: number;
  readonly requests: number;
  /** Simulated time altogether, and the real time it took, in milliseconds. */
  readonly simulatedMs: number;
  readonly tookMs: number;
}

/** Plays `count` seeds from `from` on, and answers what came of them. */
export async function playSeeds(options: PoolOptions): Promise<PoolReport> {
  const { from, count, processes } = options;
  const startedAt = performance.now();
  const results: SeedResult[] = [];
  const heard = (result: SeedResult) => {
    results.push(result);
    options.heard?.(result);
  };
  await Promise.all(
    Array.from({ length: Math.min(processes, count) }, (_, index) => {
      const own = Math.ceil((count - index) / processes);
      return playShard(options, from + index, own, heard);
    }),
  );
  const sum = (field: "starts" | "requests" | "ms") => results.reduce((total, one) => total + one[field], 0);
  return {
    played: results.length,
    failed: results.filter((one) => one.promised !== undefined).sort((one, other) => one.seed - other.seed),
    starts: sum("starts"),
    requests: sum("requests"),
    simulatedMs: sum("ms"),
    tookMs: performance.now() - startedAt,
  };
}

/** Plays one shard; a world that stalls counts as failed, and the shard goes on after it. */
async function playShard(
  { engine = "memory", processes: step, stallMs = 30_000 }: PoolOptions,
  from: number,
  count: number,
  heard: (result: SeedResult) => void,
): Promise<void> {
  let next = from;
  let left = count;
  while (left > 0) {
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "shard.ts"), engine, ...[next, left, step].map(String)],
      { stdout: "pipe", stderr: "inherit" },
    );
    let stalled = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        stalled = true;
        child.kill("SIGKILL");
      }, stallMs);
    };
    watch();
    let seed = next;
    for await (const line of lines(child.stdout)) {
      watch();
      if (line.startsWith("seed ")) seed = Number(line.slice(5));
      else if (line !== "") {
        heard(JSON.parse(line) as SeedResult);
        next += step;
        left -= 1;
      }
    }
    clearTimeout(timer);
    const code = await child.exited;
    if (left === 0) return;
    const what = stalled
      ? `the world did not end within ${stallMs} ms`
      : `its process ended with code ${code}`;
    heard({ seed, ms: 0, starts: 0, requests: 0, promised: "livelock", what });
    next = seed + step;
    left -= 1;
  }
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() as string;
    yield* parts;
  }
  if (rest !== "") yield rest;
}
