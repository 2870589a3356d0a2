/** What differs between Eddy's own checkout, with its scripts and its example, and the project of somebody who uses it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdir, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { eddy, RunningCommand, scratch, startEddy } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const EMAIL = '{"to":"ada@example.com","subject":"x"}';

describe("without a file and without ./worker.ts", () => {
  test("a project's jobs are left alone: the example is not for them", async () => {
    await using folder = await scratch();
    const broker = ["--broker", "sqlite:q.sqlite"];
    expect((await eddy(["enqueue", "emails", EMAIL, ...broker], { cwd: folder.path })).code).toBe(0);
    for (const command of ["drain", "stats", "worker"]) {
      expect(await eddy([command, ...broker], { cwd: folder.path })).toEqual({
        code: 2,
        out: "",
        err: `Cannot find the worker: there is no ./worker.ts; name its file${command === "stats" ? " with --worker" : ""}\nSee \`npx eddy ${command} --help\`.\n`,
      });
    }
    const { out } = await eddy(["stats", "emails", "--json", ...broker], { cwd: folder.path });
    expect(JSON.parse(out)).toMatchObject([{ queue: "emails", ready: 1, held: 0 }]);
  });

  test("in the checkout the example runs, and worker and drain say so", async () => {
    await using folder = await scratch();
    const broker = ["--broker", `sqlite:${folder.file("q.sqlite")}`];
    expect((await eddy(["enqueue", "emails", EMAIL, ...broker], { cwd: ROOT })).code).toBe(0);
    const stats = await eddy(["stats", "--json", ...broker], { cwd: ROOT });
    expect(JSON.parse(stats.out)).toMatchObject([{ queue: "emails", ready: 1 }]);
    const drain = await eddy(["drain", "--json", ...broker], { cwd: ROOT });
    expect(JSON.parse(drain.out)).toMatchObject({ jobs: 1, acked: 1 });
    expect(JSON.parse(drain.err.split("\n")[0]!)).toMatchObject({
      message: "Draining with the example, for there is no ./worker.ts",
      worker: "examples/worker.ts",
    });

    await using worker = startEddy(["worker", "--broker", "memory:"], { cwd: ROOT });
    await worker.outputs(/Starting the example, .+ worker=examples\/worker\.ts broker=memory: queues=emails/);
    await worker.outputs(/Ready/);
    worker.signal("SIGTERM");
    expect((await worker.exited()).code).toBe(0);
  });
});

describe("what help and hints tell people to type exists where they are", () => {
  test("in a project: the package's command", async () => {
    await using folder = await scratch();
    // As npm installs a folder: a link to the checkout, and a link to its program.
    const bin = folder.file("node_modules/.bin");
    await mkdir(bin, { recursive: true });
    await symlink(ROOT, folder.file("node_modules/eddy"));
    await symlink("../eddy/runtimes/bun/main.ts", join(bin, "eddy"));
    const run = async (...args: string[]) => {
      await using command = new RunningCommand([process.execPath, join(bin, "eddy"), ...args], {
        cwd: folder.path,
        env: { npm_config_user_agent: "npm/11.0.0 node/v20.0.0" },
      });
      return await command.ended();
    };
    const list = await run("--help");
    expect(list.out).toContain("\nUsage: npx eddy COMMAND [flags]\n");
    expect(list.out).not.toMatch(/\b(?:bun|npm) run\b/);
    for (const command of ["enqueue", "redrive"]) {
      expect((await run(command, "--help")).out).toContain(`\nUsage: npx eddy ${command} QUEUE `);
      expect((await run(command)).err).toEndWith(`\nSee \`npx eddy ${command} --help\`.\n`);
    }
  });

  test("in the checkout, even through a link to it: its scripts, by the program that ran one", async () => {
    await using folder = await scratch();
    await symlink(ROOT, folder.file("link"));
    for (const [agent, cwd, run, after] of [
      ["npm/11.0.0 node/v20.0.0", ROOT, "npm run", " --"],
      // Started without a script.
      ["", ROOT, "npm run", " --"],
      ["bun/1.4.5 npm/? node/v26", folder.file("link"), "bun run", ""],
    ] as const) {
      const eddyOf = (...args: string[]) => eddy(args, { cwd, env: { npm_config_user_agent: agent } });
      const list = await eddyOf("--help");
      expect(list.out).toContain(`\nUsage: ${run} eddy${after} COMMAND [flags], or for worker, `);
      expect(list.out).toContain(` just: ${run} COMMAND${after} [flags]\n`);
      expect((await eddyOf("enqueue")).err).toEndWith(`\nSee \`${run} enqueue${after} --help\`.\n`);
      expect((await eddyOf("redrive")).err).toEndWith(`\nSee \`${run} eddy${after} redrive --help\`.\n`);
    }
  });

  test("with npm, just as it says", async () => {
    const run = async (...args: string[]) => {
      await using command = new RunningCommand(["npm", "run", "-s", ...args], { cwd: ROOT });
      return await command.ended();
    };
    const { err } = await run("drain", "--", "--max-ms");
    const [, hint] = /^See `npm run (.+)`\.$/m.exec(err) ?? [];
    expect(hint).toBe("drain -- --help");
    const help = await run(...hint!.split(" "));
    expect([help.code, help.out]).toEqual([
      0,
      expect.stringContaining("\nUsage: npm run drain -- [FILE] [flags]\n"),
    ]);
  });

  test("with Deno: its tasks in the checkout, elsewhere the program", async () => {
    await using folder = await scratch();
    const main = join(ROOT, "runtimes/deno/main.ts");
    for (const [cwd, words] of [
      [ROOT, "npx deno task enqueue"],
      [folder.path, `deno run ${main} enqueue`],
    ] as const) {
      const deno = join(ROOT, "node_modules/.bin/deno");
      const call = [deno, "run", "--no-check", "--no-prompt", `--allow-read=${ROOT},.`, "--allow-env", main];
      await using command = new RunningCommand([...call, "enqueue"], { cwd, env: { NO_COLOR: "1" } });
      expect((await command.ended()).err).toEndWith(`\nSee \`${words} --help\`.\n`);
    }
  });
});
