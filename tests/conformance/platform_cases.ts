/**
 * The Platform port's conformance cases: what must hold of every runtime's shim, as data. No test library and no runtime is
 * imported here, so the very same cases run inside Bun, Deno and workerd, and on the simulated platform.
 *
 * @module
 */
import { isJobId } from "../../src/broker.ts";
import type { Platform } from "../../src/platform.ts";
import { rejects, same, that } from "../support/conformance_assert.ts";

/**
 * What a case asks for beyond clock, timers and randomness. `network`: a server to speak with. `webSocket`: the same, and sockets.
 * `stop`: the runtime can be asked to end.
 */
export type PlatformNeed = "network" | "webSocket" | "stop";

/** A platform, and what a case needs around it. Each case gets one of its own. */
export interface PlatformUnderTest {
  readonly platform: Platform;
  /**
   * Where a server listens (`network`): it answers `/echo` with method, header `x-eddy` and body as JSON, `/status/N` with that
   * status and `/silent` never; it echoes WebSocket messages at `/socket`, and answers every second one at `/pairs`.
   * `POST /sigterm` signals the process whose id is the body.
   */
  readonly origin?: string;
  /** Asks the runtime to end, as its host would (`stop`). */
  askToStop?(): void | Promise<void>;
}

export interface PlatformHarness {
  /** The platform's name. */
  readonly name: string;
  /** What this platform does not have, each with the reason. Cases that need it are not run. */
  readonly lacks: Readonly<Partial<Record<PlatformNeed, string>>>;
  make(): PlatformUnderTest;
  /** Lets a case's time pass: at once what it is given, or, on a simulated clock, by playing until it is done. */
  play(under: PlatformUnderTest, work: Promise<void>): Promise<void>;
}

export interface PlatformCase {
  readonly name: string;
  readonly needs: readonly PlatformNeed[];
  run(under: PlatformUnderTest): Promise<void>;
}

/** A timer may fire this much before its time by `now`, in milliseconds: clocks and timers round differently. */
const EARLY_MS = 2;

const sleep = (platform: Platform, ms: number) =>
  new Promise<void>((resolve) => {
    platform.setTimer(ms, resolve);
  });

export const platformCases: readonly PlatformCase[] = [
  {
    name: "has a known name",
    needs: [],
    async run({ platform }) {
      that(["bun", "deno", "workers", "simulated"].includes(platform.name), `its name is ${platform.name}`);
    },
  },
  {
    name: "limits are numbers from 1 on, or no limit",
    needs: [],
    async run({ platform }) {
      const { wallMs, cpuMs, requests, connections } = platform.limits;
      for (const limit of [wallMs, cpuMs, requests, connections]) that(limit >= 1, `a limit is ${limit}`);
      same(typeof platform.clockStopsDuringCpu, "boolean", "clockStopsDuringCpu");
    },
  },
  {
    name: "clock: never goes back",
    needs: [],
    async run({ platform }) {
      let last = platform.now();
      for (let round = 0; round < 20; round += 1) {
        for (let i = 0; i < 500; i += 1) {
          const now = platform.now();
          that(now >= last, `it went from ${last} to ${now}`);
          last = now;
        }
        await sleep(platform, 1);
      }
    },
  },
  {
    name: "clock: is in milliseconds, and moves while a timer runs",
    needs: [],
    async run({ platform }) {
      const before = platform.now();
      await sleep(platform, 60);
      const took = platform.now() - before;
      that(took >= 60 - EARLY_MS, `60 ms took ${took} by now()`);
      that(took < 30_000, `60 ms took ${took} by now()`);
    },
  },
  {
    name: "clock: the wall's is Unix milliseconds, and moves along",
    needs: [],
    async run({ platform }) {
      const before = platform.wallNow();
      that(before > Date.UTC(2024, 0) && before < Date.UTC(2100, 0), `it is ${before}`);
      await sleep(platform, 60);
      const took = platform.wallNow() - before;
      that(took >= 50 && took < 30_000, `60 ms took ${took} by wallNow()`);
    },
  },
  {
    name: "timers: fire once, not before their time",
    needs: [],
    async run({ platform }) {
      let fired = 0;
      const before = platform.now();
      let after = 0;
      platform.setTimer(40, () => {
        fired += 1;
        after = platform.now();
      });
      await sleep(platform, 120);
      same(fired, 1, "how often it fired");
      that(after - before >= 40 - EARLY_MS, `40 ms were ${after - before}`);
    },
  },
  {
    name: "timers: fire in the order of their times",
    needs: [],
    async run({ platform }) {
      const order: number[] = [];
      const all = [90, 10, 50].map(
        (ms) =>
          new Promise<void>((resolve) => {
            platform.setTimer(ms, () => {
              order.push(ms);
              resolve();
            });
          }),
      );
      await Promise.all(all);
      same(order, [10, 50, 90], "the order");
    },
  },
  {
    name: "timers: one of 0 ms, or less, fires soon, but not within the call",
    needs: [],
    async run({ platform }) {
      for (const ms of [0, -5, 0.4]) {
        let fired = false;
        const done = new Promise<void>((resolve) => {
          platform.setTimer(ms, () => {
            fired = true;
            resolve();
          });
        });
        that(!fired, `one of ${ms} ms fired within the call`);
        await done;
      }
    },
  },
  {
    name: "timers: one beyond what a runtime's own can count does not fire at once",
    needs: [],
    async run({ platform }) {
      let fired = false;
      const cancels = [2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER].map((ms) =>
        platform.setTimer(ms, () => {
          fired = true;
        }),
      );
      await sleep(platform, 50);
      for (const cancel of cancels) cancel();
      that(!fired, "it fired");
    },
  },
  {
    name: "timers: a cancelled one never fires; cancelling twice, or after it fired, does nothing",
    needs: [],
    async run({ platform }) {
      let fired = 0;
      const cancel = platform.setTimer(20, () => {
        fired += 1;
      });
      cancel();
      cancel();
      const late = platform.setTimer(5, () => {
        fired += 10;
      });
      await sleep(platform, 80);
      late();
      same(fired, 10, "what fired");
    },
  },
  {
    name: "timers: may be set and cancelled from within one that fires",
    needs: [],
    async run({ platform }) {
      const seen: string[] = [];
      await new Promise<void>((resolve) => {
        const other = platform.setTimer(60, () => seen.push("other"));
        platform.setTimer(10, () => {
          seen.push("first");
          other();
          platform.setTimer(90, () => {
            seen.push("second");
            resolve();
          });
        });
      });
      same(seen, ["first", "second"], "what fired");
    },
  },
  {
    name: "randomness: numbers from 0 to below 1, spread out",
    needs: [],
    async run({ platform }) {
      const buckets = new Array<number>(10).fill(0);
      for (let i = 0; i < 10_000; i += 1) {
        const number = platform.random();
        that(number >= 0 && number < 1, `it gave ${number}`);
        buckets[Math.floor(number * 10)]! += 1;
      }
      // Each holds 1,000 on average with a deviation of 30.
      for (const count of buckets) that(count > 700 && count < 1300, `a tenth of the range got ${count}`);
    },
  },
  {
    name: "ids: all different, and fit to be a lease's",
    needs: [],
    async run({ platform }) {
      const ids = new Set<string>();
      for (let i = 0; i < 10_000; i += 1) ids.add(platform.randomId());
      same(ids.size, 10_000, "different ids");
      for (const id of ids) that(isJobId(id), `not an id: ${id}`);
    },
  },
  {
    name: "keepAlive: takes any promise, tells nobody how it ended",
    needs: [],
    async run({ platform }) {
      const rejecting = new Promise<void>((_, reject) => {
        platform.setTimer(5, () => reject(new Error("kept alive, and failed")));
      });
      for (const promise of [Promise.resolve(1), Promise.reject(new Error("at once")), rejecting]) {
        same(platform.keepAlive(promise), undefined, "what it answers");
      }
      // An unhandled rejection would be told by now, and end the run.
      await sleep(platform, 40);
    },
  },
  {
    name: "onStop: what is taken back is not called; taking back twice does nothing",
    needs: [],
    async run({ platform }) {
      const forget = platform.onStop(() => {});
      const other = platform.onStop(() => {});
      forget();
      forget();
      other();
    },
  },
  {
    name: "onStop: everyone registered is told once, with a reason; who took it back is not",
    needs: ["stop"],
    async run({ platform, askToStop }) {
      const told: string[] = [];
      const gone = platform.onStop(() => told.push("gone"));
      const first = platform.onStop((reason) => told.push(`first ${reason !== "" && typeof reason}`));
      let second = () => {};
      const done = new Promise<void>((resolve) => {
        second = platform.onStop((reason) => {
          told.push(`second ${reason !== "" && typeof reason}`);
          resolve();
        });
      });
      gone();
      // Where listening for a signal keeps no process alive, this does.
      const late = platform.setTimer(10_000, () => {});
      await askToStop?.();
      await done;
      late();
      await sleep(platform, 20);
      first();
      second();
      same(told, ["first string", "second string"], "who was told");
    },
  },
  {
    name: "fetch: method, headers and body go out; status, headers and body come back",
    needs: ["network"],
    async run({ platform, origin }) {
      const body = 'é😀\n"x"';
      const response = await platform.fetch(`${origin}/echo`, {
        method: "POST",
        headers: { "x-eddy": "one" },
        body,
      });
      same(response.status, 200, "status");
      same(response.headers.get("content-type"), "application/json", "content type");
      same(await response.json(), { method: "POST", header: "one", body }, "what the server got");
    },
  },
  {
    name: "fetch: takes a URL and a Request as well, and a body of bytes",
    needs: ["network"],
    async run({ platform, origin }) {
      const byUrl = await platform.fetch(new URL(`${origin}/echo`));
      same(((await byUrl.json()) as { method: string }).method, "GET", "by URL");
      const request = new Request(`${origin}/echo`, {
        method: "PUT",
        body: new TextEncoder().encode("bytes"),
      });
      const byRequest = await platform.fetch(request);
      same(await byRequest.json(), { method: "PUT", header: null, body: "bytes" }, "by Request");
    },
  },
  {
    name: "fetch: an answer of 500 is an answer",
    needs: ["network"],
    async run({ platform, origin }) {
      const response = await platform.fetch(`${origin}/status/500`);
      same([response.status, response.ok], [500, false], "status");
      await response.body?.cancel();
    },
  },
  {
    name: "fetch: a signal ends it while it waits, and before it begins",
    needs: ["network"],
    async run({ platform, origin }) {
      const controller = new AbortController();
      const waiting = platform.fetch(`${origin}/silent`, { signal: controller.signal });
      platform.setTimer(30, () => controller.abort());
      await rejects(waiting, "AbortError", [], "a fetch that is under way");
      await rejects(
        platform.fetch(`${origin}/echo`, { signal: AbortSignal.abort() }),
        "AbortError",
        [],
        "a fetch with a signal that is aborted",
      );
    },
  },
  {
    name: "fetch: thirty at a time all come back",
    needs: ["network"],
    async run({ platform, origin }) {
      const answers = await Promise.all(
        Array.from({ length: 30 }, async (_, i) => {
          const response = await platform.fetch(`${origin}/echo`, { method: "POST", body: String(i) });
          return ((await response.json()) as { body: string }).body;
        }),
      );
      same(
        answers,
        Array.from({ length: 30 }, (_, i) => String(i)),
        "answers",
      );
    },
  },
  {
    name: "openWebSocket: text and bytes go there and back, the bytes as an ArrayBuffer",
    needs: ["webSocket"],
    async run({ platform, origin }) {
      const socket = platform.openWebSocket(`${origin?.replace("http", "ws")}/socket`);
      socket.binaryType = "arraybuffer";
      const got: unknown[] = [];
      await new Promise<void>((resolve, reject) => {
        socket.onerror = () => reject(new Error("the socket failed"));
        socket.onopen = () => {
          socket.send("é😀");
          socket.send(new Uint8Array([0, 255, 10, 13]));
        };
        socket.onmessage = ({ data }) => {
          got.push(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
          if (got.length === 2) resolve();
        };
      });
      same(got, ["é😀", new Uint8Array([0, 255, 10, 13])], "what came back");
      const closed = new Promise<void>((resolve) => {
        socket.onclose = () => resolve();
      });
      socket.close();
      await closed;
    },
  },
  {
    name: "openWebSocket: one that cannot be opened says so by an event, not by throwing",
    needs: ["webSocket"],
    async run({ platform, origin }) {
      const socket = platform.openWebSocket(`${origin?.replace("http", "ws")}/status/404`);
      await new Promise<void>((resolve) => {
        socket.onclose = () => resolve();
      });
    },
  },
  {
    name: "openWebSocket: two messages before an answer do not wait for one another",
    needs: ["webSocket"],
    async run({ platform, origin }) {
      const socket = platform.openWebSocket(`${origin?.replace("http", "ws")}/pairs`);
      await new Promise<void>((resolve) => {
        socket.onopen = () => resolve();
      });
      const times: number[] = [];
      for (let i = 0; i < 51; i += 1) {
        const before = platform.now();
        const answered = new Promise<void>((resolve) => {
          socket.onmessage = () => resolve();
        });
        socket.send("one");
        socket.send("two");
        await answered;
        times.push(platform.now() - before);
      }
      const closed = new Promise<void>((resolve) => {
        socket.onclose = () => resolve();
      });
      socket.close();
      await closed;
      // A socket that holds the second one back until the first is acknowledged takes some 40 ms for every pair.
      const median = times.sort((a, b) => a - b)[25]!;
      that(median < 25, `half of the pairs took ${Math.round(median)} ms or more`);
    },
  },
];

/** How many cases run on each platform. */
export const PLATFORM_EXPECTED = { bun: 24, deno: 24, simulated: 16 } as const;

/** Whether a platform is to be put through a case. */
export function platformApplies(one: PlatformCase, harness: PlatformHarness): boolean {
  return one.needs.every((need) => harness.lacks[need] === undefined);
}

/** Runs one case on a platform of its own. */
export async function runPlatformCase(one: PlatformCase, harness: PlatformHarness): Promise<void> {
  const under = harness.make();
  same(under.platform.name, harness.name, "the platform's name");
  await harness.play(under, one.run(under));
}
