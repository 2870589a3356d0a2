/** The token of the HTTP app is compared whole. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { tokenMatcher } from "../../src/http/auth.ts";

const hashOf = (text: string) => createHash("sha256").update(text).digest();

test("a token whose hash begins, or ends, as the right one's does is a wrong one", async () => {
  const right = hashOf("the-token");
  const matches = tokenMatcher("the-token");
  for (const alike of [
    (hash: Buffer) => hash[0] === right[0] && hash[1] === right[1],
    (hash: Buffer) => hash[30] === right[30] && hash[31] === right[31],
  ]) {
    let guess = 0;
    while (!alike(hashOf(`guess-${guess}`))) guess += 1;
    expect(await matches(`guess-${guess}`)).toBe(false);
  }
  expect(await matches("the-token")).toBe(true);
  expect(await matches("the-token ")).toBe(false);
  expect(await matches("")).toBe(false);
});
