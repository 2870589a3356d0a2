/** The commands on NATS where Deno finds less than on Bun: in a project of one's own there is no client library until it is named. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Ended, RunningCommand, scratch } from "../../cli/process.ts";
import { DENO, ROOT } from "./process.ts";

// Starts processes.
setDefaultTimeout(30_000);

describe("in a project of one's own, nats.ws", () => {
  const packages = {
    hono: join(ROOT, "node_modules/hono/dist/index.js"),
    valibot: join(ROOT, "node_modules/valibot/dist/index.mjs"),
  };

  async function stats(config: object): Promise<Ended> {
    await using folder = await scratch();
    await writeFile(folder.file("deno.json"), JSON.stringify(config));
    const line = [DENO, "run", "--allow-all", "--no-lock", "--no-check", "--no-remote"];
    const eddy = ["--config", "deno.json", join(ROOT, "runtimes/deno/main.ts"), "stats", "emails"];
    await using command = new RunningCommand([...line, ...eddy, "--broker", "ws://127.0.0.1:9"], {
      cwd: folder.path,
      env: { NO_COLOR: "1" },
    });
    return await command.ended();
  }

  test("that is not to be found is named, with the mend", async () => {
    expect(await stats({ imports: packages })).toEqual({
      code: 1,
      out: "",
      err: 'Cannot use the broker: nats.ws, the client of NATS, is not found; set "nodeModulesDir": "manual" in deno.json, or map nats.ws in its imports, after `npm ci` in Eddy\'s checkout\n',
    });
  });

  const client = join(ROOT, "node_modules/nats.ws/esm/nats.js");
  test.each([{ nodeModulesDir: "manual" }, { imports: { ...packages, "nats.ws": client } }])(
    "is found by either mend: %j",
    async (config) => {
      const { code, err } = await stats(config);
      expect(code).toBe(1);
      expect(err).toContain("there is no connection to ws://127.0.0.1:9");
    },
  );
});

test("a credentials file outside the folder takes a permission that no task has", async () => {
  await using command = new RunningCommand([DENO, "task", "--quiet", "stats", "emails"], {
    cwd: ROOT,
    env: { NO_COLOR: "1", EDDY_BROKER: "ws://127.0.0.1:9", EDDY_NATS_CREDS: "/etc/hostname" },
  });
  const { code, err } = await command.ended();
  expect(code).toBe(1);
  expect(err).toStartWith(
    'Cannot go on without a permission: Requires read access to "/etc/hostname" (--allow-read)\nTo permit it, add it to --allow-read of the task in deno.json',
  );
});
