/** Every mutant still fits the source: the whole list is run by `npm run mutants`. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { MUTANTS } from "./list.ts";

const ROOT = resolve(import.meta.dir, "../..");

test("there are mutants enough, each by a name of its own", () => {
  expect(MUTANTS.length).toBeGreaterThanOrEqual(30);
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});

test("each patch matches its source exactly once, and changes it", () => {
  const wrong = MUTANTS.flatMap(({ name, file, search, replace }) => {
    const times = readFileSync(join(ROOT, file), "utf8").split(search).length - 1;
    return times === 1 && search !== replace ? [] : [`${name}: ${times} times in ${file}`];
  });
  expect(wrong).toEqual([]);
});

test("each names tests that are there", () => {
  const missing = MUTANTS.flatMap(({ name, tests }) =>
    tests.length === 0 ? [`${name}: none`] : tests.filter((one) => !existsSync(join(ROOT, one))),
  );
  expect(missing).toEqual([]);
});
