/**
 * Chaos on the real engines, all of them side by side: producers, workers and servers killed, frozen and restarted, with faults of the network, all at once. The same as
 * `npm run chaos`, which runs as long as it is told to.
 */
import { expect, test } from "bun:test";
import { ADAPTERS } from "./engines.ts";
import { broken, reasons, table } from "./report.ts";
import { runChaos } from "./run.ts";

/** All engines share a machine of two cores, so each has fewer processes than it has alone. */
const SIDE_BY_SIDE = { seconds: 110, workers: 2, producers: 1 };

test("nothing accepted is lost, poison alone ends as a dead letter, and each repeat has its cause", async () => {
  const reports = await Promise.all(
    ADAPTERS.map((adapter, n) =>
      runChaos({ adapter, seed: 26 + n, ...SIDE_BY_SIDE, say: (line) => console.log(`${adapter}: ${line}`) }),
    ),
  );
  console.log(`${table(reports)}\n${reasons(reports)}`);
  expect(reports.flatMap((one) => broken(one).map((line) => `${one.adapter}: ${line}`))).toEqual([]);
  for (const { kills } of reports) expect(kills).toBeGreaterThan(0);
}, 400_000);
