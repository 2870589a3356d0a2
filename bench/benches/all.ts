/**
 * The benches, in the order in which they run.
 *
 * @module
 */
import type { Bench } from "../support/bench.ts";
import { cold } from "./cold.ts";
import { core } from "./core.ts";
import { depth } from "./depth.ts";
import { fleet } from "./fleet.ts";
import { idle } from "./idle.ts";
import { latency } from "./latency.ts";
import { link } from "./link.ts";
import { loopback } from "./loopback.ts";
import { requests } from "./requests.ts";
import { rule } from "./rule.ts";

export const BENCHES: readonly Bench[] = [
  rule,
  requests,
  link,
  loopback,
  latency,
  idle,
  depth,
  fleet,
  core,
  cold,
];
