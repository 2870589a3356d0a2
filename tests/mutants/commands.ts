/**
 * The guards of the commands.
 *
 * @module
 */
import type { Mutant } from "./mutant.ts";

export const COMMANDS: readonly Mutant[] = [
  {
    name: "commands-forced-end",
    loses: "a process that the worker's code ended counts as failed",
    file: "runtimes/cli/end_guard.ts",
    search: "process.exitCode = FAILED;",
    replace: "",
    tests: ["tests/cli/ended.test.ts"],
  },
  {
    name: "commands-stray-faults",
    loses: "a fault outside of any job ends no other job",
    file: "runtimes/cli/stray_faults.ts",
    search: "for (const event of EVENTS) process.on(event, tell);",
    replace: "",
    tests: ["tests/cli/ended.test.ts"],
  },
  {
    name: "commands-unreadable-faults",
    loses: "a fault outside of any job that throws when it is read ends no job",
    file: "runtimes/cli/places.ts",
    search: `  } catch {
    return [];`,
    replace: `  } catch (error) {
    throw error;`,
    tests: ["tests/cli/ended.test.ts"],
  },
  {
    name: "commands-half-a-line",
    loses: "a line that was not read to its end is no job",
    file: "runtimes/cli/stopped.ts",
    search: "const item = await Promise.race([stopped, items.next()]);",
    replace:
      "const item = await Promise.race([stopped.catch(() => ({ done: true }) as const), items.next()]);",
    tests: ["tests/cli/streams.test.ts"],
  },
  {
    name: "commands-one-header-a-name",
    loses: "a header that is given twice is not lost",
    file: "runtimes/cli/commands/enqueue.ts",
    search: "if (Object.hasOwn(headers, name)) {",
    replace: "if (name === undefined) {",
    tests: ["tests/cli/usage.test.ts"],
  },
  {
    name: "commands-no-empty-flag",
    loses: "a flag whose variable is not set is not taken for a value",
    file: "runtimes/cli/flags.ts",
    search: 'if (token.value === "") throw',
    replace: 'if (token.value === "\\0") throw',
    tests: ["tests/cli/usage.test.ts"],
  },
  {
    name: "commands-quiet-empty-queue",
    loses: "a queue that runs empty after each job has no line for each",
    file: "runtimes/cli/sums.ts",
    search: "if (now < queue.quietUntil) return;",
    replace: "",
    tests: ["tests/cli/logging.test.ts"],
  },
  {
    name: "commands-empty-in-time",
    loses: "that a queue is empty is told with the last verdict, not a lease later",
    file: "runtimes/cli/sums.ts",
    search: `    this.#arm();
    this.#tellEmpty(name, queue);`,
    replace: "    this.#arm();",
    tests: ["tests/cli/logging.test.ts"],
  },
  {
    name: "commands-one-refusal",
    loses: "a broker that is refused is told once",
    file: "runtimes/cli/event_log.ts",
    search: 'this.#toldRefusal ? "debug" : "error"',
    replace: '"error"',
    tests: ["tests/cli/logging.test.ts"],
  },
  {
    name: "commands-second-signal",
    loses: "a second signal tells what stays held",
    file: "runtimes/cli/end_guard.ts",
    search: "if (this.#lastWords !== undefined) tellNow(this.#lastWords());",
    replace: "",
    tests: ["tests/cli/worker.test.ts"],
  },
  {
    name: "commands-stats-known-queues",
    loses: "a misspelt queue does not show as an empty one",
    file: "runtimes/cli/commands/stats.ts",
    search: "if (named.length > 0) return await knownWorker(flags, context);",
    replace: "if (named.length > 0) return undefined;",
    tests: ["tests/cli/folder_worker.test.ts"],
  },
  {
    name: "options-known-alone",
    loses: "a misspelt option is not swallowed",
    file: "src/known_fields.ts",
    search: "if (known.has(name)) continue;",
    replace: "if (known.size > 0) continue;",
    tests: ["tests/unit/known_fields.test.ts"],
  },
  {
    name: "options-are-no-list",
    loses: "a list is not read as an object of names",
    file: "src/known_fields.ts",
    search: " && !(Symbol.iterator in value);",
    replace: ";",
    tests: ["tests/unit/known_fields.test.ts", "tests/unit/producer.test.ts"],
  },
];
