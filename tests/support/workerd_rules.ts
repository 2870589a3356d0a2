/**
 * Runs inside workerd, before the code under test: imposes what Cloudflare's production imposes and a local workerd does not.
 *
 * - requests (fetches, WebSockets and calls of objects) are counted for each invocation and refused above a limit;
 * - six connections are open at a time: a further request waits until one has been answered and its body read or cancelled;
 * - the clock stands still while code computes, and moves at I/O only;
 * - an invocation that is longer than the wall limit is cut off: nothing it waits for comes any more.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** What is imposed. Left out, or `null`: not limited. */
export interface Rules {
  readonly requests?: number | null;
  readonly connections?: number | null;
  readonly wallMs?: number | null;
  readonly frozenClock?: boolean;
}

/** What one invocation did. */
export interface InvocationRecord {
  readonly kind: string;
  /** Requests made, refused ones included. */
  readonly requests: number;
  readonly refused: number;
  /** Calls of objects: they are among the requests. */
  readonly objectCalls: number;
  /** The most connections that were open at a time. */
  readonly connections: number;
  /** By the real clock. */
  readonly ms: number;
  readonly cut: boolean;
  readonly error: string | null;
}

interface Invocation {
  readonly kind: string;
  readonly startedAt: number;
  requests: number;
  refused: number;
  objectCalls: number;
  open: number;
  mostOpen: number;
  readonly waiting: (() => void)[];
  /** Answered, but their bodies were not read: the runtime takes the oldest away when others wait. */
  readonly unread: Set<() => void>;
  cut: boolean;
}

const current = new AsyncLocalStorage<Invocation>();
const records: InvocationRecord[] = [];
const never = new Promise<never>(() => {});

const real = {
  now: Date.now,
  fetch: globalThis.fetch.bind(globalThis),
  setTimeout: globalThis.setTimeout.bind(globalThis),
  Date: globalThis.Date,
  WebSocket: globalThis.WebSocket,
};

/** Under this name a test's handler finds the clock that does not stand still, to compute for some time. */
const REAL_NOW = "eddyRealNow";

let rules: Rules = {};
let frozenAt = 0;

/** An I/O: the clock may move. */
function tick(): void {
  frozenAt = real.now();
}

/** Whatever comes in from outside passes here; nothing comes to an invocation that was cut off. */
async function incoming<T>(value: Promise<T>): Promise<T> {
  const invocation = current.getStore();
  try {
    return await value;
  } finally {
    tick();
    if (invocation?.cut) await never;
  }
}

/** Puts the rules in force. To be called once, before anything else is loaded. */
export function install(imposed: Rules): void {
  rules = imposed;
  Object.assign(globalThis, { [REAL_NOW]: real.now });
  globalThis.fetch = ((input: RequestInfo, init?: RequestInit) =>
    guardedFetch(input, init)) as typeof globalThis.fetch;
  globalThis.setTimeout = guardedTimeout as typeof globalThis.setTimeout;
  globalThis.WebSocket = guardedSocket(real.WebSocket);
  if (imposed.frozenClock === true) freeze();
}

function count(): Invocation | undefined {
  const invocation = current.getStore();
  if (invocation === undefined) return undefined;
  invocation.requests += 1;
  if (invocation.requests > (rules.requests ?? Number.POSITIVE_INFINITY)) {
    invocation.refused += 1;
    throw new Error("Too many subrequests by single Worker invocation.");
  }
  return invocation;
}

async function guardedFetch(input: RequestInfo, init?: RequestInit): Promise<Response> {
  const invocation = count();
  if (invocation === undefined) return await real.fetch(input, init);
  if (invocation.cut) await never;
  await connect(invocation);
  let released = false;
  const release = () => {
    if (released) return;
    released = true;
    invocation.unread.delete(release);
    invocation.open -= 1;
    invocation.waiting.shift()?.();
  };
  try {
    const response = await incoming(real.fetch(input, init));
    return watched(response, invocation, release);
  } catch (error) {
    release();
    throw error;
  }
}

async function connect(invocation: Invocation): Promise<void> {
  const most = rules.connections ?? Number.POSITIVE_INFINITY;
  while (invocation.open >= most) {
    const [oldest] = invocation.unread;
    if (oldest !== undefined && invocation.unread.size === invocation.open) {
      oldest();
      continue;
    }
    await new Promise<void>((resolve) => invocation.waiting.push(resolve));
  }
  invocation.open += 1;
  invocation.mostOpen = Math.max(invocation.mostOpen, invocation.open);
}

/** A response whose connection is released once its body was read or cancelled. */
function watched(response: Response, invocation: Invocation, release: () => void): Response {
  if (response.body === null) {
    release();
    return response;
  }
  invocation.unread.add(release);
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        invocation.unread.delete(release);
        try {
          const { done, value } = await incoming(reader.read());
          if (done) {
            release();
            controller.close();
          } else controller.enqueue(value);
        } catch (error) {
          release();
          controller.error(error);
        }
      },
      async cancel(reason) {
        release();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}

function guardedTimeout(fn: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): unknown {
  const invocation = current.getStore();
  return real.setTimeout(() => {
    if (invocation?.cut) return;
    tick();
    fn(...args);
  }, ms);
}

function guardedSocket(Real: typeof WebSocket): typeof WebSocket {
  return new Proxy(Real, {
    construct(target, args: [string]) {
      const invocation = count();
      const socket = new target(...args);
      // First in line, so the clock has moved before anybody else hears.
      for (const event of ["open", "message", "close", "error"]) {
        socket.addEventListener(event, (heard) => {
          if (invocation?.cut) heard.stopImmediatePropagation();
          tick();
        });
      }
      return socket;
    },
  });
}

function freeze(): void {
  tick();
  const FrozenDate = new Proxy(real.Date, {
    construct: (target, args: []) => (args.length === 0 ? new target(frozenAt) : new target(...args)),
    get: (target, key, receiver) => (key === "now" ? () => frozenAt : Reflect.get(target, key, receiver)),
  });
  globalThis.Date = FrozenDate;
  Object.defineProperty(performance, "now", { value: () => frozenAt, configurable: true });
}

/** Runs an invocation under the rules, with all it asked to wait for. */
export async function invocation<T>(
  kind: string,
  run: (waitUntil: (promise: Promise<unknown>) => void) => Promise<T>,
): Promise<T> {
  const one: Invocation = {
    kind,
    startedAt: real.now(),
    requests: 0,
    refused: 0,
    objectCalls: 0,
    open: 0,
    mostOpen: 0,
    waiting: [],
    unread: new Set(),
    cut: false,
  };
  tick();
  const waitedFor: Promise<unknown>[] = [];
  const done = current.run(one, async () => {
    try {
      return await run((promise) => waitedFor.push(promise));
    } finally {
      while (waitedFor.length > 0) await Promise.allSettled(waitedFor.splice(0));
    }
  });
  const record = (error: string | null) => {
    const { requests, refused, objectCalls, mostOpen: connections, cut } = one;
    const ms = real.now() - one.startedAt;
    records.push({ kind, requests, refused, objectCalls, connections, ms, cut, error });
  };
  try {
    const { wallMs } = rules;
    const result = await (typeof wallMs === "number" ? Promise.race([done, wall(one, wallMs)]) : done);
    record(null);
    return result;
  } catch (error) {
    record(String(error).slice(0, 300));
    throw error;
  }
}

function wall(one: Invocation, ms: number): Promise<never> {
  return new Promise((_, reject) => {
    real.setTimeout(() => {
      one.cut = true;
      reject(new Error("The invocation was cut off at its wall limit"));
    }, ms);
  });
}

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}
interface Handler {
  fetch?(request: Request, env: Bindings, ctx: Context): Promise<Response>;
  scheduled?(event: unknown, env: Bindings, ctx: Context): Promise<void>;
}
type Bindings = Record<string, unknown>;

/** A Worker's handler under the rules. `GET /__rules` answers what was recorded, and forgets it; `POST /__rules` sets other limits. */
export function handlerUnderRules(handler: Handler): Handler {
  return {
    async fetch(request, env, ctx) {
      if (new URL(request.url).pathname === "/__rules") {
        if (request.method === "POST") rules = { ...rules, ...((await request.json()) as Rules) };
        return Response.json(records.splice(0));
      }
      return await invocation("fetch", async (waitUntil) => {
        const response = (await handler.fetch?.(request, wrapped(env), { waitUntil })) as Response;
        ctx.waitUntil(Promise.resolve());
        return response;
      });
    },
    async scheduled(event, env) {
      await invocation(
        "scheduled",
        async (waitUntil) => await handler.scheduled?.(event, wrapped(env), { waitUntil }),
      );
    },
  };
}

type ObjectClass = new (...args: never[]) => object;

/** An object's class whose events are invocations under the rules. */
export function objectUnderRules<C extends ObjectClass>(Class: C): C {
  class Under extends (Class as unknown as new (...args: unknown[]) => object) {}
  for (const name of methodsOf(Class)) {
    const method = Reflect.get(Class.prototype, name) as (...args: unknown[]) => unknown;
    Object.defineProperty(Under.prototype, name, {
      value(this: object, ...args: unknown[]) {
        return invocation(name, async () => await method.apply(this, args));
      },
    });
  }
  return Under as unknown as C;
}

/** The names of the methods that a class and those it extends define, the runtime's own left out. */
function methodsOf(Class: ObjectClass): Set<string> {
  const names = new Set<string>();
  for (
    let one: object = Class.prototype;
    Object.getPrototypeOf(Object.getPrototypeOf(one)) !== null;
    one = Object.getPrototypeOf(one)
  ) {
    for (const name of Object.getOwnPropertyNames(one)) {
      if (name !== "constructor" && typeof Reflect.get(Class.prototype, name) === "function") names.add(name);
    }
  }
  return names;
}

/** Bindings whose calls are counted, and are I/O when they are answered. */
function wrapped(env: Bindings): Bindings {
  return Object.fromEntries(
    Object.entries(env).map(([name, binding]) => [
      name,
      typeof (binding as { idFromName?: unknown } | null)?.idFromName === "function"
        ? namespaceUnderRules(binding as Namespace)
        : binding,
    ]),
  );
}

interface Namespace {
  idFromName(name: string): unknown;
  get(id: unknown): Record<string, (...args: unknown[]) => Promise<unknown>>;
}

function namespaceUnderRules(namespace: Namespace): Namespace {
  return {
    idFromName: (name) => namespace.idFromName(name),
    get: (id) => {
      const stub = namespace.get(id);
      return new Proxy(stub, {
        get:
          (_, name: string) =>
          async (...args: unknown[]) => {
            const invocation = count();
            if (invocation !== undefined) invocation.objectCalls += 1;
            return await incoming((stub[name] as (...all: unknown[]) => Promise<unknown>)(...args));
          },
      });
    },
  };
}
