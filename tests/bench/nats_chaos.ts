/**
 * Twenty thousand jobs on NATS while the connection is cut and frozen and the server restarted. Prints what became of them; exit code 1 when one was lost,
 * ran twice without a reason, or the loop took more than five seconds to work again.
 *
 * `bun tests/bench/nats_chaos.ts [jobs] [how long to freeze, in ms]`
 *
 * @module
 */
import { runChaos } from "../support/nats_chaos.ts";

const jobs = Number(process.argv[2] ?? 20_000);
const freezeMs = Number(process.argv[3] ?? 30_000);
const report = await runChaos({ jobs, freezeMs, leaseMs: 5_000, jobMs: 5, say: console.log });
const slowest = Math.max(...report.recoveries.map((one) => one.ms));
console.log(
  `${jobs} jobs: ${report.lost.length} lost, ${report.repeated.length} ran twice or more, ${report.unexplained.length} of them not held at a disturbance; ` +
    `${report.left} left, ${report.dead} dead; ${report.connections} connections; slowest recovery ${Math.round(slowest)} ms`,
);
process.exit(
  report.lost.length + report.unexplained.length + report.left + report.dead === 0 && slowest < 5_000 ? 0 : 1,
);
