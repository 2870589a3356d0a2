/** What a gateway is started with. */
import { expect, test } from "bun:test";
import { type GatewayOptions, startGateway } from "../../runtimes/bun/gateway/gateway.ts";

const wrong: readonly [given: unknown, kind: ErrorConstructor, says: RegExp][] = [
  [undefined, TypeError, /options is undefined; give an object/],
  [{}, TypeError, /token is missing; give a text/],
  [{ token: 5 }, TypeError, /token is a number/],
  [
    { token: "t", redis: new URL("redis://:hush@localhost:6379") },
    TypeError,
    /redis is an object; give a text/,
  ],
  [{ token: "t", hostname: 7 }, TypeError, /hostname is a number/],
  [{ token: "t", port: "8079" }, TypeError, /port is a string; give a whole number from 0 to 65535/],
  [{ token: "t", port: 65_536 }, RangeError, /port is 65536/],
  [{ token: "t", maxBodyBytes: 0 }, RangeError, /maxBodyBytes is 0/],
  [{ token: "t", redisTimeoutMs: 0 }, RangeError, /redisTimeoutMs is 0/],
  [{ token: "t", redisTimeoutMs: Number.NaN }, RangeError, /redisTimeoutMs is NaN/],
  [{ token: "t", redisTimeoutMs: 2 ** 31 }, RangeError, /redisTimeoutMs is 2147483648/],
  [{ token: "t", pingMs: -1 }, RangeError, /pingMs is -1/],
  [{ token: "t", pingMS: 1_000 }, TypeError, /pingMS/],
];

for (const [given, kind, says] of wrong) {
  test(`${says} is said before anything listens`, () => {
    let thrown: unknown;
    try {
      startGateway(given as GatewayOptions);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(kind);
    const { message } = thrown as Error;
    expect(message).toStartWith("Cannot use the gateway: ");
    expect(message).toMatch(says);
    expect(message).not.toContain("hush");
  });
}
