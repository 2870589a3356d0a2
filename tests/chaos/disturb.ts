/**
 * What a chaos run does, and when, as the dice say.
 *
 * @module
 */
import type { Dice } from "../simulation/dice.ts";
import type { ChaosEngine } from "./engines.ts";
import type { Member } from "./member.ts";
import { LEASE_MS } from "./settings.ts";

type Deed = "kill" | "freeze" | "restart" | "freezeServer";

const DEEDS: readonly (readonly [number, Deed])[] = [
  [5, "kill"],
  [3, "freeze"],
  [2, "restart"],
  [1, "freezeServer"],
];
/** Between two deeds, in milliseconds. */
const PAUSE_MS = [100, 1_500] as const;
/** The longest that a server is away between its end and its start, in milliseconds. */
const MOST_DOWN_MS = 800;

export interface Counts {
  /** Of processes; of processes made to stand still; of the server's ends; of the server made to stand still. */
  readonly kills: number;
  readonly freezes: number;
  readonly restarts: number;
  readonly serverFreezes: number;
}

/** Does what the dice say for so long. What lasts overlaps with what comes next; all of it is over when this resolves. */
export async function disturb(
  engine: ChaosEngine,
  members: readonly Member[],
  dice: Dice,
  forMs: number,
): Promise<Counts> {
  const counts = { kills: 0, freezes: 0, restarts: 0, serverFreezes: 0 };
  const endsAt = performance.now() + forMs;
  const lasting = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let server: Promise<void> | undefined;
  const last = (what: Promise<void>): Promise<void> => {
    const one = what.catch((error: unknown) => void failures.push(error)).finally(() => lasting.delete(one));
    lasting.add(one);
    return one;
  };
  /** One thing at a time is done to the server. */
  const toServer = (what: Promise<void> | undefined) => {
    if (what === undefined) return;
    server = last(what).finally(() => {
      server = undefined;
    });
  };
  const choices = DEEDS.filter(([, deed]) => {
    if (deed === "restart") return engine.restart !== undefined;
    return deed !== "freezeServer" || engine.freeze !== undefined;
  });
  const network = disturbNetwork(engine, dice, endsAt, last);
  while (performance.now() < endsAt) {
    await Bun.sleep(dice.whole(...PAUSE_MS));
    const deed = dice.weighted(choices);
    const one = dice.pick(members);
    const lastsMs = dice.whole(LEASE_MS / 4, LEASE_MS * 2);
    if (deed === "kill") {
      // One that stands still can be killed too.
      one.kill();
      counts.kills += 1;
    } else if (deed === "freeze" && !one.isFrozen) {
      counts.freezes += 1;
      void last(one.freeze(lastsMs));
    } else if (deed === "restart" && server === undefined) {
      counts.restarts += 1;
      toServer(engine.restart?.(dice.whole(0, MOST_DOWN_MS), dice.chance(0.5)));
    } else if (deed === "freezeServer" && server === undefined) {
      counts.serverFreezes += 1;
      toServer(engine.freeze?.(lastsMs));
    }
  }
  await network;
  await Promise.all(lasting);
  if (failures.length > 0) throw failures[0];
  return counts;
}

/** Beside all that, one fault of somebody's network after the other. */
async function disturbNetwork(
  engine: ChaosEngine,
  dice: Dice,
  endsAt: number,
  last: (what: Promise<void>) => unknown,
): Promise<void> {
  while (engine.disturb !== undefined && performance.now() < endsAt) {
    await Bun.sleep(dice.whole(...PAUSE_MS));
    last(engine.disturb(dice, dice.whole(LEASE_MS / 4, LEASE_MS * 2)));
  }
}
