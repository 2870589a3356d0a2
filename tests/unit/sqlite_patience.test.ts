/** The waits of SQLite's transactions. */
import { expect, test } from "bun:test";
import { elapse } from "../../adapters/sqlite/patience.ts";

test("a time that has passed already is waited for without a warning", async () => {
  const warned: string[] = [];
  const warn = ({ name }: Error) => void warned.push(name);
  process.on("warning", warn);
  try {
    await elapse(-0.2);
    // Warnings are told on a later turn than the one they belong to.
    await elapse(1);
    await elapse(1);
  } finally {
    process.off("warning", warn);
  }
  expect(warned).toEqual([]);
});
