/**
 * What Deno Deploy lets one invocation spend, by tier. A Deno process of one's own has no limits.
 *
 * @module
 */
import type { PlatformLimits } from "../../src/platform.ts";
import { refuse, withOwnLimits } from "../own_limits.ts";

/** The account's tier. */
export type DenoDeployTier = "free" | "paid";

// Deno's page "Pricing and Limits" (subhosting, read in 2026), "CPU time per request": 50 or 200 ms, depending on the tier, as an average over many requests that is not
// enforced of each. Deploy's own page names no such figure: an invocation that keeps to these is safe on both.
const CPU_MS: Readonly<Record<DenoDeployTier, number>> = { free: 50, paid: 200 };

// No page names a limit of time. A run by a cron of every minute should be over before the next; and what is between gives up on a silent HTTP answer not long after.
const WALL_MS = 50_000;

/**
 * The limits of one invocation on Deno Deploy: for the platform of a run by cron or by HTTP there. Of requests and connections there is no limit.
 *
 * @example
 * ```ts
 * const platform = denoPlatform({ limits: denoDeployLimits("free") });
 * ```
 *
 * @param own replaces any of them: where the account has other ones, or to stay well below.
 * @throws {RangeError} when the tier is unknown, or an own limit is no whole number from 1 on.
 */
export function denoDeployLimits(tier: DenoDeployTier, own: Partial<PlatformLimits> = {}): PlatformLimits {
  const cpuMs = Object.hasOwn(CPU_MS, tier) ? CPU_MS[tier] : undefined;
  if (cpuMs === undefined) refuse("Deno Deploy", "tier", String(tier), 'give "free" or "paid"');
  const usual: PlatformLimits = {
    wallMs: WALL_MS,
    cpuMs,
    requests: Number.POSITIVE_INFINITY,
    connections: Number.POSITIVE_INFINITY,
  };
  return withOwnLimits("Deno Deploy", usual, own);
}
