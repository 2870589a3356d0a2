/**
 * Something between a broker and its gateway that misbehaves: it answers by itself, or swallows what was answered.
 *
 * @module
 */

/** What to do with a request. `forward` passes it on and answers what the gateway answered. */
export type Behaviour = (request: Request, forward: () => Promise<Response>) => Response | Promise<Response>;

export interface Front {
  readonly url: string;
  /** How many requests came. */
  requests: number;
  /** Decides about each request from now on; by default all are passed on. */
  behave: Behaviour;
  stop(): Promise<void>;
}

export function startFront(target: string): Front {
  const pass: Behaviour = (_request, forward) => forward();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      front.requests += 1;
      const body = await request.arrayBuffer();
      const { pathname } = new URL(request.url);
      const forward = () =>
        fetch(target + pathname, {
          method: request.method,
          headers: request.headers,
          body,
          signal: request.signal,
        });
      return front.behave(request, forward);
    },
    error: () => new Response("broken", { status: 500 }),
  });
  const front: Front = {
    url: `http://127.0.0.1:${server.port}`,
    requests: 0,
    behave: pass,
    stop: () => server.stop(true),
  };
  return front;
}
