/**
 * The guards of the Workers runtime.
 *
 * @module
 */
import type { Mutant } from "./mutant.ts";

export const WORKERS: readonly Mutant[] = [
  {
    name: "workers-poke-starts",
    loses: "an enqueue starts a consumer's object that never was",
    file: "runtimes/workers/consumer_object.ts",
    search: "if (on !== true) await this.#storage.put(ON, true);",
    replace: "if (on !== true) return;",
    tests: ["tests/runtimes/workers/no_cron.test.ts"],
  },
  {
    name: "workers-stopped-stays",
    loses: "a consumer's object that was stopped is started on purpose only",
    file: "runtimes/workers/consumer_object.ts",
    search: "if (on === false) return;",
    replace: "",
    tests: ["tests/runtimes/workers/no_cron.test.ts"],
  },
  {
    name: "workers-poke-kept-back",
    loses: "the call of the consumer's object is one of the invocation's requests",
    file: "runtimes/workers/invocations.ts",
    search: "requests - POKE_REQUESTS",
    replace: "requests",
    tests: ["tests/runtimes/workers/poking.test.ts"],
  },
];
