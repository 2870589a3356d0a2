import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { nodeSqlite } from "../../adapters/sqlite/node_driver.ts";
import { EXPECTED, sqliteHarness } from "./harnesses.ts";
import { conformance } from "./run.ts";

// "normal": the file is thrown away, so waiting for the disk would prove nothing.
conformance(
  sqliteHarness((file) => bunSqlite({ file, synchronous: "normal" })),
  EXPECTED.sqlite,
  "bun:sqlite",
);
conformance(
  sqliteHarness((file) => nodeSqlite({ file, synchronous: "normal" })),
  EXPECTED.sqlite,
  "node:sqlite",
);
