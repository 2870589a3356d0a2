/**
 * What Cloudflare lets one invocation spend, by plan and by what started it.
 *
 * @module
 */
import type { PlatformLimits } from "../../src/platform.ts";
import { refuse, withOwnLimits } from "../own_limits.ts";

/** The account's plan. */
export type WorkersPlan = "free" | "paid";

/** What started an invocation: an HTTP request (or a call by another Worker), a cron, or a Durable Object's alarm. */
export type WorkersTrigger = "request" | "cron" | "alarm";

const MINUTE_MS = 60_000;

// Cloudflare's limits page, "Duration": crons and alarms have 15 minutes. A request has no limit as long as its caller stays connected; but callers and what is
// between give up on a silent answer after 100 seconds or so, so a run behind one should have reported by then.
const WALL_MS: Readonly<Record<WorkersTrigger, number>> = {
  request: MINUTE_MS,
  cron: 15 * MINUTE_MS,
  alarm: 15 * MINUTE_MS,
};

// The same page, "Account plan limits" (subrequests a request, simultaneous outgoing connections a request) and "CPU time": 10 ms on the free plan; 30 s by default on the
// paid one, which `limits.cpu_ms` in wrangler.toml raises to 5 minutes, and to 15 for a cron that comes once an hour or less often.
const BY_PLAN: Readonly<Record<WorkersPlan, Omit<PlatformLimits, "wallMs">>> = {
  free: { cpuMs: 10, requests: 50, connections: 6 },
  paid: { cpuMs: 30_000, requests: 10_000, connections: 6 },
};

/**
 * The limits of one invocation.
 *
 * @param own replaces any of them: where the account has other ones, or to stay well below.
 * @throws {RangeError} when plan or trigger is unknown, or an own limit is no whole number from 1 on.
 */
export function workersLimits(
  plan: WorkersPlan,
  trigger: WorkersTrigger,
  own: Partial<PlatformLimits> = {},
): PlatformLimits {
  const byPlan = BY_PLAN[plan];
  if (byPlan === undefined) refuse("a Worker", "plan", String(plan), 'give "free" or "paid"');
  const wallMs = WALL_MS[trigger];
  if (wallMs === undefined)
    refuse("a Worker", "trigger", String(trigger), 'give "request", "cron" or "alarm"');
  return withOwnLimits("a Worker", { wallMs, ...byPlan }, own);
}
