/**
 * The guards of the NATS adapter.
 *
 * @module
 */
import type { Mutant } from "./mutant.ts";

const PULL = ["tests/adapters/nats_pull.test.ts"];
const CONNECTION = ["tests/adapters/nats_connection.test.ts"];
const REFUSALS = ["tests/adapters/nats_refusals.test.ts"];

export const NATS: readonly Mutant[] = [
  {
    name: "nats-ack-policy",
    loses: "a consumer whose acks are not explicit is refused",
    file: "adapters/nats/config.ts",
    search: `if (config.ack_policy !== "explicit") {`,
    replace: `if (config.ack_policy === "") {`,
    tests: REFUSALS,
  },
  {
    name: "nats-max-deliver",
    loses: "a consumer that parks jobs which still have attempts left is refused",
    file: "adapters/nats/config.ts",
    search: "if (maxDeliver > 0 && maxDeliver < leastMaxDeliver) {",
    replace: "if (maxDeliver > 0 && maxDeliver < 0) {",
    tests: REFUSALS,
  },
  {
    name: "nats-discard",
    loses: "a stream that drops its oldest jobs when it is full is refused",
    file: "adapters/nats/config.ts",
    search: `if (limited.length > 0 && config.discard !== "new") {`,
    replace: `if (limited.length > 0 && config.discard === "") {`,
    tests: REFUSALS,
  },
  {
    name: "nats-max-age",
    loses: "a stream that drops jobs by their age is refused",
    file: "adapters/nats/config.ts",
    search: "if ((config.max_age ?? 0) > 0) {",
    replace: "if ((config.max_age ?? 0) < 0) {",
    tests: REFUSALS,
  },
  {
    name: "nats-gives-back-again",
    loses:
      "what is given back, and whose copy is stored, is ended though the first try failed between the two",
    file: "adapters/nats/settling.ts",
    search: "this.releaseLater(helds);",
    replace: "",
    tests: ["tests/chaos/ws_proxy.test.ts"],
  },
  {
    name: "nats-strays-go-back",
    loses: "what comes for a claim that was abandoned goes back at once",
    file: "adapters/nats/claim.ts",
    search: "if (core.leases.isOver(leaseId, core.now())) return this.#giveBack([raw]);",
    replace: "if (core.leases.isOver(leaseId, core.now())) return;",
    tests: PULL,
  },
  {
    name: "nats-late-for-the-copy",
    loses: "what came for a claim that had failed answers the claim's copy",
    file: "adapters/nats/claim.ts",
    search: "if (this.#late.size > 0) claim.raws.push(...this.#takeLate(leaseId));",
    replace: "",
    tests: PULL,
  },
  {
    name: "nats-handed-to-nobody",
    loses: "a hand-out that reached nobody makes no suspect and charges no attempt",
    file: "adapters/nats/claim.ts",
    search: "raw.handOuts = countedHandOuts(raw.info.delivered, ageMs, leaseMs);",
    replace: "void countedHandOuts(raw.info.delivered, ageMs, leaseMs);",
    tests: PULL,
  },
  {
    name: "nats-acks-are-read",
    loses: "an ack counts only once the server is known to have read it",
    file: "adapters/nats/settling.ts",
    search: "if (isProven) return done();",
    replace: "if (isProven || helds.length > 0) return done();",
    tests: CONNECTION,
  },
  {
    name: "nats-dead-letter-first",
    loses: "a dead letter is stored before its job is ended",
    file: "adapters/nats/settling.ts",
    search: "const replies = await session.call(verb, timeoutMs, messages);",
    replace: `const helds = moves.map((move) => move.held);
    await this.#end(session, helds, TERM, verb, timeoutMs);
    const replies = await session.call(verb, timeoutMs, messages);`,
    tests: CONNECTION,
  },
  {
    name: "nats-watchdog",
    loses: "a connection that stands still is given up",
    file: "adapters/nats/link.ts",
    search: `await session.flush("ping", this.#options.pongWithinMs).catch(() => session.kill());`,
    replace: `await session.flush("ping", this.#options.pongWithinMs).catch(() => {});`,
    tests: CONNECTION,
  },
  {
    name: "nats-late-verdicts",
    loses: "no verdict is sent once its lease's deadline has passed",
    file: "adapters/nats/leases.ts",
    search: "if (lease === undefined || now < lease.deadline) return lease;",
    replace: "if (lease === undefined || now < Number.MAX_VALUE) return lease;",
    tests: CONNECTION,
  },
  {
    name: "nats-look-makes-none",
    loses: "a look makes no queue of a mistyped name",
    file: "adapters/nats/provisioning.ts",
    search: "if (found === undefined && !makes) this.#absent(wanted.name);",
    replace: "if (found === undefined && wanted.name === undefined) this.#absent(wanted.name);",
    tests: ["tests/adapters/nats_absent.test.ts"],
  },
];
