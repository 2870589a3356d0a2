/**
 * What a chaos run does to a WebSocket's way.
 *
 * @module
 */
import type { Dice } from "../simulation/dice.ts";
import type { WebSocketProxy } from "../support/ws_proxy.ts";

type Deed = "cut" | "stall" | "half-open" | "delay" | "refuse" | "lose a reply" | "repeat" | "truncate";

const DEEDS: readonly (readonly [number, Deed])[] = [
  [2, "cut"],
  [1, "stall"],
  [2, "half-open"],
  [1, "delay"],
  [1, "refuse"],
  [3, "lose a reply"],
  [2, "repeat"],
  [2, "truncate"],
];
/** What requests hold: claims, verdicts and renewals, enqueues. */
const REQUESTS = ["CONSUMER.MSG.NEXT", "$JS.ACK", "PUB eddy.jobs"] as const;
/** What comes back: an answer to a request, and a job. */
const ANSWER = "MSG _INBOX";
const DELIVERY = "$JS.ACK";

/** Does one thing to a connection. What lasts does so for about `ms`; what waits for its moment may come later, or never. */
export async function disturbWebSocket(proxy: WebSocketProxy, dice: Dice, ms: number): Promise<void> {
  const way = dice.pick(["there", "back"] as const);
  switch (dice.weighted(DEEDS)) {
    case "cut":
      proxy.cut();
      return;
    case "stall":
      proxy.freeze();
      await Bun.sleep(ms);
      proxy.thaw();
      return;
    case "half-open":
      proxy.deaden(way);
      await Bun.sleep(ms);
      proxy.revive();
      return;
    case "delay":
      proxy.delay(dice.whole(0, 150), dice.whole(0, 150));
      await Bun.sleep(ms);
      proxy.delay(0, 0);
      return;
    case "refuse":
      proxy.refuse(dice.pick([401, 429, 500, 502] as const));
      await Bun.sleep(ms / 2);
      proxy.admit();
      return;
    case "lose a reply":
      void proxy.loseReply(dice.pick(REQUESTS));
      return;
    case "repeat":
      // No job comes twice: TCP brings nothing so. An answer does, from whatever repeats a request.
      void proxy.repeat(ANSWER);
      return;
    case "truncate":
      void proxy.truncate(way, dice.pick(way === "there" ? REQUESTS : [ANSWER, DELIVERY]));
      return;
  }
}
