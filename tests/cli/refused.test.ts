/** A broker that is refused while a worker runs on it is told in one sentence, however many queues come upon it. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { eddy, scratch, startEddy } from "./process.ts";

// Each test starts a process.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");

test("a file that is moved away under a worker of three queues", async () => {
  await using folder = await scratch();
  await Bun.write(
    folder.file("worker.ts"),
    `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
     export default defineWorker({ queues: ["a", "b", "c"].map((name) => queue(name).handle(() => {})) });`,
  );
  await using worker = startEddy(["worker"], { cwd: folder.path });
  await worker.outputs(/Ready/);
  renameSync(folder.file("eddy.sqlite"), folder.file("moved.sqlite"));
  const { code, out, err } = await worker.exited();
  expect([code, err]).toEqual([1, "Stopped: the broker is refused, as the log says\n"]);
  expect(out.match(/the file was removed or replaced while it was open/g)).toHaveLength(1);
  expect(out).not.toContain("trying again");
  expect(out).toMatch(
    /ERROR The broker is refused .+\n.+ Stopping: .+ reason="the broker is refused"\n.+ Stopped\n$/,
  );
});

test("and under a drain", async () => {
  await using folder = await scratch();
  await Bun.write(
    folder.file("worker.ts"),
    `import { renameSync } from "node:fs";
     import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
     export default defineWorker({ queues: [queue("a").handle(() => renameSync("eddy.sqlite", "moved.sqlite"))] });`,
  );
  await eddy(["enqueue", "a", "1"], { cwd: folder.path });
  const { code, out, err } = await eddy(["drain"], { cwd: folder.path });
  expect([code, out]).toEqual([1, ""]);
  expect(err.match(/the file was removed or replaced while it was open/g)).toHaveLength(1);
  expect(err).toMatch(
    /ERROR The broker is refused .+\n(.+\n)*Stopped: the broker is refused, as the log says\n$/,
  );
});
