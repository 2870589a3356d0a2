/**
 * All conformance cases: what must hold of every broker, as data. No test library and no runtime is imported here or
 * below, so the very same cases run inside Bun, Deno and workerd.
 *
 * @module
 */

import type { ConformanceCase } from "../support/conformance.ts";
import { adminCases } from "./cases/admin.ts";
import { bodyCases } from "./cases/bodies.ts";
import { claimCases } from "./cases/claim.ts";
import { enqueueCases } from "./cases/enqueue.ts";
import { exchangeCases } from "./cases/exchange.ts";
import { leaseCases } from "./cases/lease.ts";
import { lifeCases } from "./cases/life.ts";
import { orderCases } from "./cases/order.ts";
import { settleCases } from "./cases/settle.ts";

export const cases: readonly ConformanceCase[] = [
  ...claimCases,
  ...settleCases,
  ...leaseCases,
  ...enqueueCases,
  ...orderCases,
  ...bodyCases,
  ...adminCases,
  ...exchangeCases,
  ...lifeCases,
];
