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
];
