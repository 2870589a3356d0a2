/** What only a process shows: SQLite on Deno needs no permission but for its file, whatever lies beside it. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DENO, denoEnv, ROOT } from "./process.ts";

test("the permission for the file alone is enough", async () => {
  const folder = mkdtempSync(join(tmpdir(), "eddy-deno-permission-"));
  const file = join(folder, "jobs.db");
  try {
    const child = Bun.spawn(
      [
        DENO,
        "run",
        "--no-check",
        "--no-prompt",
        `--allow-read=${file}`,
        `--allow-write=${file}`,
        "tests/runtimes/deno/programs/enqueue_once.ts",
        file,
      ],
      { cwd: ROOT, env: denoEnv(), stdio: ["ignore", "pipe", "pipe"] },
    );
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ out, err }).toEqual({
      out: '{"ready":1,"delayed":0,"held":0,"dead":0,"paused":false}\n',
      err: "",
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
