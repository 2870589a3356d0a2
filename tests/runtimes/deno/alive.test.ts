/** What only a process shows: the Deno Platform keeps one alive while a promise is pending, and not longer. */
import { expect, test } from "bun:test";
import { DENO, denoEnv, ROOT } from "./process.ts";

async function run(program: string): Promise<{ out: string; code: number }> {
  const child = Bun.spawn([DENO, "eval", "--quiet", "--no-check", program], {
    cwd: ROOT,
    env: denoEnv(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const out = await new Response(child.stdout).text();
  return { out, code: await child.exited };
}

const PLATFORM = 'import { denoPlatform } from "./runtimes/deno/mod.ts"; const platform = denoPlatform();';

test("a promise that nothing else keeps alive is waited for", async () => {
  const { out, code } = await run(`${PLATFORM}
    const pending = new Promise((resolve) => {
      Deno.unrefTimer(setTimeout(resolve, 50));
    }).then(() => console.log("settled"));
    platform.keepAlive(pending);
    platform.keepAlive(Promise.reject(new Error("nobody is told")));`);
  expect({ out, code }).toEqual({ out: "settled\n", code: 0 });
});

test("neither a settled promise nor somebody who listens for a stop keeps it", async () => {
  const { out, code } = await run(`${PLATFORM}
    platform.keepAlive(Promise.resolve());
    platform.onStop(() => {});
    console.log("end");`);
  expect({ out, code }).toEqual({ out: "end\n", code: 0 });
});
