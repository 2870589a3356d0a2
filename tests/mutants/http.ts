/**
 * The guards of the HTTP app.
 *
 * @module
 */
import type { Mutant } from "./mutant.ts";

export const HTTP: readonly Mutant[] = [
  {
    name: "http-whole-token",
    loses: "every byte of the token's hash is compared",
    file: "src/http/auth.ts",
    search: "for (let i = 0; i < a.length; i += 1) difference",
    replace: "for (let i = 0; i < 2; i += 1) difference",
    tests: ["tests/http/token.test.ts"],
  },
  {
    name: "http-token-needed",
    loses: "without the right token nothing is served",
    file: "src/http/auth.ts",
    search: "if (given === undefined || !(await matches(given))) {",
    replace: "if (given === undefined) {",
    tests: ["tests/http/guard.test.ts"],
  },
  {
    name: "http-no-foreign-pages",
    loses: "a web page cannot use an app without a token",
    file: "src/http/auth.ts",
    search: "if (fromPage || !isLoopbackHost(new URL(url).hostname)) {",
    replace: "if (!isLoopbackHost(new URL(url).hostname)) {",
    tests: ["tests/http/guard.test.ts"],
  },
  {
    name: "http-body-limit",
    loses: "a body above the limit is not read",
    file: "src/http/body.ts",
    search: "if (size > maxBytes) {",
    replace: "if (size > maxBytes * 1_000) {",
    tests: ["tests/http/enqueue.test.ts", "tests/http/tending.test.ts"],
  },
  {
    name: "http-named-lines",
    loses: "many jobs whose answer was lost can be sent again without a second one of any",
    file: "src/http/ingest.ts",
    search: "...(id === undefined ? {} : { id }) };",
    replace: "};",
    tests: ["tests/http/enqueue.test.ts"],
  },
  {
    name: "http-usable-token",
    loses: "a token that no header can carry is refused where it is set",
    file: "src/http/auth.ts",
    search: "if (isToken(token)) return;",
    replace: "return;",
    tests: ["tests/http/usable_token.test.ts"],
  },
  {
    name: "http-unknown-header",
    loses: "a misspelt option is not passed over",
    file: "src/http/job_options.ts",
    search: "if (unknown.length > 0) {",
    replace: "if (unknown.length > 1_000) {",
    tests: ["tests/http/known.test.ts"],
  },
  {
    name: "http-unknown-parameter",
    loses: "a misspelt parameter is not passed over",
    file: "src/http/known.ts",
    search: "if (unknown.length > 0) {",
    replace: "if (unknown.length > 1_000) {",
    tests: ["tests/http/known.test.ts"],
  },
  {
    name: "http-plain-names-told",
    loses: "a refusal does not repeat what is no name",
    file: "src/http/known.ts",
    search: 'PLAIN_NAME.test(name) ? name : "…"',
    replace: "name",
    tests: ["tests/http/known.test.ts"],
  },
  {
    name: "gateway-raw-words",
    loses: "a raw body cannot be a word that is refused",
    file: "runtimes/bun/gateway/commands.ts",
    search:
      'return argument.length <= LONGEST_WORD ? Buffer.from(argument).toString("latin1").toUpperCase() : "";',
    replace: 'return "";',
    tests: ["tests/gateway/hostile.test.ts"],
  },
  {
    name: "gateway-slow-reader",
    loses: "what waits for a subscriber that does not read is bounded",
    file: "runtimes/bun/gateway/subscribe.ts",
    search: "(stream.desiredSize ?? 0) < -MOST_BEHIND_BYTES",
    replace: "stream.desiredSize === 0.5",
    tests: ["tests/gateway/hostile.test.ts"],
  },
  {
    name: "http-token-flag",
    loses: "an app whose requireToken is left out is refused",
    file: "src/http/app.ts",
    search: `assertFlag(what, "requireToken", options.requireToken);`,
    replace: "",
    tests: ["tests/http/usable_token.test.ts"],
  },
];
