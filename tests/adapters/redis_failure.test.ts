/** What is told of a request that failed: enough to act on, and nothing of what was sent. */
import { expect, test } from "bun:test";
import { answeredError, failure, harmless } from "../../adapters/redis/failure.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";

const answered = (text: string) => answeredError("claim", "https://host", text);

test("never anything of the command", () => {
  for (const text of [
    "ERR unknown command 'SECRET', with args beginning with: 'SECRET'",
    "SECRET",
    "secret SECRET",
    "ERR Error running script: @user_script:12: SECRET",
    "OOM command not allowed when used memory > 'maxmemory'. SECRET",
    "HTTP 500 SECRET",
  ]) {
    const told = answered(text);
    expect(Bun.inspect(told)).not.toContain("SECRET");
    expect(told.cause).toBeUndefined();
  }
  expect(harmless("ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.")).toBe(
    "ERR max daily request limit exceeded",
  );
  expect(harmless("ERR x @user_script:12: y")).toBe("ERR, line 12 of the script");
  expect(harmless("HTTP 503")).toBe("HTTP 503");
});

test("never anything of what fetch throws but its code", () => {
  const context = { verb: "claim", origin: "https://host", timeoutMs: 5, timedOut: false };
  const told = failure(Object.assign(new Error("SECRET"), { code: "ECONNRESET", path: "SECRET" }), context);
  expect(told.message).toBe("Cannot claim: https://host cannot be reached, or broke off (ECONNRESET)");
  expect(Bun.inspect(told)).not.toContain("SECRET");
  expect(failure(new Error("SECRET"), { ...context, timedOut: true }).message).toBe(
    "Cannot claim: https://host did not answer within 5 ms",
  );
  const own = new BrokerError("redis", "claim", "told already");
  expect(failure(own, { ...context, timedOut: true })).toBe(own);
});

test("a token that is refused is final and names the option", () => {
  for (const text of ["WRONGPASS invalid or missing auth token", "Unauthorized"]) {
    const told = answered(text);
    expect(told).toBeInstanceOf(BrokerRefusedError);
    expect(told.message).toContain("token");
  }
  expect(answered("NOPERM no rights")).toBeInstanceOf(BrokerRefusedError);
  // Of the token this says nothing.
  expect(answered("NOAUTH Authentication required.")).toBeInstanceOf(BrokerRefusedError);
  expect(answered("NOAUTH Authentication required.").message).toContain("asks for a password");
  expect(answered("ERR other")).not.toBeInstanceOf(BrokerRefusedError);
});

test("what is refused before anything is done is known to have changed nothing; of anything else it is not", () => {
  for (const text of [
    "OOM command not allowed when used memory > 'maxmemory'. script: 12, on @user_script:3.",
    "READONLY You can't write against a read only replica.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script.",
    "CLUSTERDOWN The cluster is down",
    "ERR max request size exceeded. Limit: 10 bytes",
    "ERR Cannot reach Redis at 127.0.0.1:6379",
    "ERR Redis refuses the connection: WRONGPASS invalid username-password pair",
  ]) {
    expect([text, answered(text).unchanged]).toEqual([text, true]);
  }
  for (const text of [
    "ERR Lost the connection to Redis at 127.0.0.1:6379",
    "ERR Redis did not answer within 5 ms",
    "ERR x @user_script:12: y",
    "HTTP 502",
    "",
  ]) {
    expect([text, answered(text).unchanged]).toEqual([text, false]);
  }
});
