/** The services and the cron drains, on Bun and on Deno, as real processes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { RunningCommand } from "../cli/process.ts";
import { DENO, ROOT } from "../runtimes/deno/process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

/** Deno's tasks may write below the project's folder alone. */
const folder = join(ROOT, ".eddy", `examples-${process.pid}`);
let files = 0;
beforeAll(() => mkdirSync(folder, { recursive: true }));
afterAll(() => rmSync(folder, { recursive: true }));

interface Runtime {
  readonly name: string;
  readonly service: readonly string[];
  readonly cron: readonly string[];
  /** Runs a program given as text. */
  readonly program: readonly string[];
  /** What the cron example says when it is registered. */
  readonly registered: RegExp;
}

const RUNTIMES: readonly Runtime[] = [
  {
    name: "bun",
    service: [process.execPath, "examples/bun_service.ts"],
    cron: [process.execPath, "examples/bun_cron.ts"],
    program: [process.execPath, "-e"],
    registered: /^The next drain is at \d{4}-.*:00\.000Z\n/,
  },
  {
    name: "deno",
    service: [DENO, "task", "--quiet", "example:service"],
    cron: [DENO, "task", "--quiet", "example:cron"],
    program: [DENO, "eval", "--quiet", "--no-check"],
    registered: /^Draining by the schedule \* \* \* \* \*\n/,
  },
];

function start(command: readonly string[], broker: string, env: Record<string, string> = {}): RunningCommand {
  return new RunningCommand(command, { cwd: ROOT, env: { NO_COLOR: "1", EDDY_BROKER: broker, ...env } });
}

for (const runtime of RUNTIMES) {
  const fresh = () => {
    files += 1;
    return `sqlite:${relative(ROOT, join(folder, `${runtime.name}-${files}.sqlite`))}`;
  };

  describe(`the service on ${runtime.name}`, () => {
    test("enqueues, works, serves Eddy's API and stops gracefully", async () => {
      await using service = start(runtime.service, fresh(), {
        ADDRESS: "127.0.0.1:0",
        EDDY_HTTP_TOKEN: "a-token",
      });
      const [, url] = await service.outputs(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/);
      const signUp = async () => {
        const response = await fetch(`${url}/signup`, {
          method: "POST",
          body: '{"email":"ada@example.com"}',
        });
        return [response.status, await response.json()];
      };
      expect(await signUp()).toEqual([202, { queued: true }]);
      expect(await signUp()).toEqual([202, { queued: false }]);
      await service.outputs(/E-mail sent/);
      const wrong = ['{"email":"no secret"}', '{"email":{"toString":1}}', "{}", "null", "no json", ""];
      for (const body of [...wrong, JSON.stringify({ email: "x".repeat(300) })]) {
        const refused = await fetch(`${url}/signup`, { method: "POST", body });
        const error = "Cannot enqueue job 0 to emails: The body does not fit the queue's schema at: to";
        expect([refused.status, await refused.json()]).toEqual([422, { error }]);
      }
      expect((await fetch(`${url}/health`)).status).toBe(200);
      expect((await fetch(`${url}/v1/queues`)).status).toBe(401);
      const headers = { Authorization: "Bearer a-token" };
      const queues = await fetch(`${url}/v1/queues`, { headers });
      expect([queues.status, await queues.text()]).toEqual([200, expect.stringContaining('"emails"')]);
      const drained = await fetch(`${url}/v1/drain`, { method: "POST", headers });
      expect(await drained.json()).toMatchObject({ stopped: "empty", left: 0 });
      service.signal("SIGTERM");
      const { code, out, err } = await service.exited();
      expect([code, err]).toEqual([0, ""]);
      expect(out.match(/E-mail sent/g)).toHaveLength(1);
      expect(out).not.toContain("a-token");
    });

    test("refuses an address that all can reach without a token", async () => {
      await using service = start(runtime.service, "memory:", { ADDRESS: "0.0.0.0:0" });
      const { code, err } = await service.exited();
      expect([code, err]).toEqual([1, expect.stringContaining("set EDDY_HTTP_TOKEN")]);
    });
  });

  describe(`the cron drain on ${runtime.name}`, () => {
    test("what cron calls works the queue empty", async () => {
      const broker = fresh();
      await using enqueue = new RunningCommand(
        [process.execPath, "runtimes/bun/main.ts", "enqueue", "emails", "--broker", broker],
        { cwd: ROOT, input: '{"to":"ada@example.com","subject":"x"}\n'.repeat(20) },
      );
      expect((await enqueue.ended()).code).toBe(0);
      const program = `
        const { tick } = await import("./examples/${runtime.name}_cron.ts");
        console.log(JSON.stringify([await tick(), await tick(AbortSignal.abort())]));`;
      await using run = start([...runtime.program, program], broker);
      const { code, out, err } = await run.exited();
      expect([code, err]).toEqual([0, ""]);
      expect(JSON.parse(out)).toMatchObject([
        { jobs: 20, acked: 20, stopped: "empty", left: 0 },
        { jobs: 0, stopped: "signal", left: 0 },
      ]);
    });

    test("registers, and ends when it is told to", async () => {
      await using cron = start(runtime.cron, fresh());
      await cron.outputs(runtime.registered);
      cron.signal("SIGTERM");
      expect(await cron.exited()).toMatchObject({ code: 0, err: "" });
    });
  });
}
