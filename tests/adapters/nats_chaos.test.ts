/** Restarts, cuts and a freeze under load; the script in tests/bench does the same at full size. */
import { expect, test } from "bun:test";
import { runChaos } from "../support/nats_chaos.ts";

test("cuts in each verb and in mid-batch, a freeze longer than the lease, and restarts of the server lose nothing", async () => {
  const report = await runChaos({ jobs: 3_000, leaseMs: 3_000, freezeMs: 4_000, jobMs: 5 });
  expect(report.lost).toEqual([]);
  expect(report.unexplained).toEqual([]);
  expect([report.left, report.dead]).toEqual([0, 0]);
  expect(report.recoveries).toHaveLength(11);
  const slowest = Math.max(...report.recoveries.map((one) => one.ms));
  console.log(
    `nats: 3000 jobs, 11 disturbances, 0 lost, ${report.repeated.length} ran twice or more, all held at one; slowest recovery ${Math.round(slowest)} ms`,
  );
}, 120_000);
