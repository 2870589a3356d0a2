/**
 * What the Workers of these tests offer of their consumer's object, by HTTP, to the tests outside of workerd.
 *
 * @module
 */
import type { ConsumerObjectStub } from "../../../runtimes/workers/mod.ts";

/** Answers `/test/start`, `/test/stop`, `/test/poke` and `/test/status`; `undefined` to any other path. */
export async function consumerRoute(
  pathname: string,
  consumer: () => ConsumerObjectStub,
): Promise<Response | undefined> {
  switch (pathname) {
    case "/test/start":
      await consumer().start();
      return Response.json(null);
    case "/test/stop":
      await consumer().stop();
      return Response.json(null);
    case "/test/poke":
      await consumer().poke();
      return Response.json(null);
    case "/test/status":
      return Response.json(await consumer().status());
    default:
      return undefined;
  }
}
