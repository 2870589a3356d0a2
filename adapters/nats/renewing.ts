/**
 * Renewals: a word of progress for each delivery under a lease, all in one go, and one answer for all.
 *
 * @module
 */
import type { RenewResult } from "../../src/broker.ts";
import type { Core } from "./core.ts";
import { detach } from "./deliveries.ts";
import type { Lease } from "./leases.ts";
import { WPI } from "./settling.ts";

export async function renew(
  core: Core,
  leaseIds: readonly string[],
  timeoutMs: number,
): Promise<RenewResult[]> {
  const now = core.now();
  const leases = leaseIds.map((id) => core.leases.get(id, now));
  const held = leases.filter((lease): lease is Lease => lease !== undefined);
  if (held.length === 0) return leaseIds.map(() => "lost");
  const session = await core.link.session("renew", timeoutMs);
  const sentAt = core.now();
  const open = held.flatMap((lease) => lease.openSlots());
  session.sayOnly(WPI, open);
  // Most deliveries are settled long before; of what is held for longer, this is the first that is heard.
  for (const one of open) detach(one);
  await session.flush("renew", timeoutMs);
  return leases.map((lease) => {
    // It may have ended while the connection was waited for.
    if (lease === undefined || sentAt >= lease.deadline) return "lost";
    lease.deadline = sentAt + core.leaseMs;
    return "held";
  });
}
