/**
 * The guards of the NATS adapter.
 *
 * @module
 */
import type { Mutant } from "./mutant.ts";

const PULL = ["tests/adapters/nats_pull.test.ts"];
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
    search: "gathering.raws.push(...this.#takeLate(leaseId));",
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
];
