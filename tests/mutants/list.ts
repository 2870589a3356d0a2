/**
 * All mutants. `npm run mutants` applies each in turn and demands that a named test goes red.
 *
 * @module
 */
import { ADAPTERS } from "./adapters.ts";
import { COMMANDS } from "./commands.ts";
import { CORE } from "./core.ts";
import { HTTP } from "./http.ts";
import type { Mutant } from "./mutant.ts";
import { NATS } from "./nats.ts";
import { WORKERS } from "./workers.ts";

/** Guards whose loss simulated worlds must notice, too, whatever unit tests say. */
const SEEN_IN_WORLDS: ReadonlySet<string> = new Set([
  "lease-margin",
  "deadline-anchor-at-send",
  "abort-on-loss",
  "no-start-after-loss",
  "no-verdict-after-loss",
  "renewal-awaited-before-settling",
  "claim-repeated-under-its-id",
  "reserve-a-slot",
  "claims-never-overlap",
  "one-batch-ahead",
  "news-during-a-claim",
  "any-clock",
  "at-once-on-any-clock",
  "request-deadline",
  "ack-is-retried-as-an-ack",
  "refusal-is-final",
  "what-comes-after-a-stop-goes-back",
  "release-on-stop",
  "settle-before-close",
  "interrupted-is-released",
  "most-attempts",
  "dead-after-the-last-attempt",
  "last-chances-alone",
  "nothing-starts-beside-a-last-chance",
  "one-last-chance-is-kept",
  "a-drain-opens-in-time",
  "one-request-id-an-enqueue",
  "memory-fence",
  "memory-idempotent-claim",
  "memory-finished-leases",
  "memory-release-uncharged",
]);

const simulated = [...CORE, ...ADAPTERS]
  .filter(({ name }) => SEEN_IN_WORLDS.has(name))
  .map(
    (one): Mutant => ({ ...one, name: `${one.name}-in-worlds`, tests: ["tests/simulation/worlds.test.ts"] }),
  );

/** And those of SQLite, by the same worlds on its engine. */
const SEEN_IN_WORLDS_ON_SQLITE: ReadonlySet<string> = new Set([
  "sqlite-fence",
  "sqlite-finished-leases",
  "sqlite-release-uncharged",
]);

const simulatedOnSqlite = ADAPTERS.filter(({ name }) => SEEN_IN_WORLDS_ON_SQLITE.has(name)).map(
  (one): Mutant => ({ ...one, name: `${one.name}-in-worlds`, tests: ["tests/simulation/sqlite.test.ts"] }),
);

export const MUTANTS: readonly Mutant[] = [
  ...CORE,
  ...ADAPTERS,
  ...NATS,
  ...HTTP,
  ...COMMANDS,
  ...WORKERS,
  ...simulated,
  ...simulatedOnSqlite,
];
