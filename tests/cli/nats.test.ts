/** Commands on a real NATS server: a login that it refuses is told by the variables that hold it. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { startNats } from "../support/nats_server.ts";
import { eddy } from "./process.ts";

// Starts a server and processes.
setDefaultTimeout(30_000);

test("a login that is refused is told by its variables, never by what they hold", async () => {
  const server = await startNats({ config: 'authorization { user: "ada", password: "hush-1" }' });
  try {
    const stats = (env: Record<string, string>) =>
      eddy(["stats", "emails"], { env: { EDDY_BROKER: server.url, ...env } });
    const cases: [Record<string, string>, string][] = [
      [
        {},
        "whoever does not log in; set EDDY_NATS_CREDS, or EDDY_NATS_USER and EDDY_NATS_PASSWORD, or EDDY_BROKER_TOKEN",
      ],
      [{ EDDY_NATS_USER: "ada" }, "EDDY_NATS_USER without a password; set EDDY_NATS_PASSWORD"],
      [
        { EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "hush-2" },
        "EDDY_NATS_USER and EDDY_NATS_PASSWORD; set them to a user it knows",
      ],
      [
        { EDDY_BROKER_TOKEN: "hush-3" },
        "EDDY_BROKER_TOKEN; set the right one, or EDDY_NATS_CREDS, or EDDY_NATS_USER and EDDY_NATS_PASSWORD",
      ],
    ];
    for (const [env, told] of cases) {
      const { code, out, err } = await stats(env);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toBe(`Cannot log in at ${new URL(server.url).origin}: the server refuses ${told}\n`);
    }
    const right = await stats({ EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "hush-1" });
    expect([right.code, right.err]).toEqual([0, ""]);
  } finally {
    await server.stop();
  }
});
