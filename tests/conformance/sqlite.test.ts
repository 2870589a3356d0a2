import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import type { Harness } from "../support/conformance.ts";
import { conformance } from "./run.ts";

const harness: Harness = {
  name: "sqlite",
  lacks: { waits: "its claims answer at once" },
  shortMs: 1000,
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "eddy-conformance-"));
    let nowMs = 1_700_000_000_000;
    // "normal": the file is thrown away, so waiting for the disk would prove nothing.
    const database = bunSqlite({ file: join(folder, "jobs.db"), synchronous: "normal" });
    return {
      connect: () => new SqliteBroker({ database, wallNow: () => nowMs }),
      async passMs(ms) {
        nowMs += ms;
      },
      async stop() {
        rmSync(folder, { recursive: true });
      },
    };
  },
};

conformance(harness, 155);
