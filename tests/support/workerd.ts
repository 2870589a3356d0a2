/**
 * A Worker in workerd, under the rules of production ({@linkcode Rules}), for tests that run in Bun.
 *
 * @module
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Miniflare, type MiniflareOptions } from "miniflare";
import type { InvocationRecord, Rules } from "./workerd_rules.ts";

export interface WorkerdOptions {
  /** The Worker's module. */
  readonly entry: string;
  /** Texts among the bindings. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** Binding to class, for each class of Durable Objects that the module exports. */
  readonly objects?: Readonly<Record<string, string>>;
  readonly rules?: Rules;
  /** Compatibility flags, as in wrangler.toml: `nodejs_compat` where the bundle needs Node's modules. */
  readonly flags?: readonly string[];
  /** Where it listens on loopback, after a restart too; by default somewhere each time. */
  readonly port?: number;
  /** Where objects are kept; by default in a folder of its own, gone at the end. */
  readonly folder?: string;
}

/** A stream that can be read past. */
interface Flowing {
  resume(): unknown;
}

/** As in wrangler.toml. */
const COMPATIBILITY_DATE = "2026-04-01";
const RULES = resolve(import.meta.dir, "workerd_rules.ts");

export class Workerd {
  readonly #options: MiniflareOptions;
  readonly #folder: string;
  readonly #ownFolder: boolean;
  #miniflare: Miniflare;

  private constructor(options: MiniflareOptions, folder: string, ownFolder: boolean) {
    this.#options = options;
    this.#folder = folder;
    this.#ownFolder = ownFolder;
    this.#miniflare = new Miniflare(options);
  }

  /** Bundles the module and starts workerd with it. */
  static async start(options: WorkerdOptions): Promise<Workerd> {
    const folder = options.folder ?? mkdtempSync(join(tmpdir(), "eddy-workerd-"));
    const bundle = await bundleOf(options, folder);
    const workerd = new Workerd(
      {
        modules: true,
        script: bundle,
        ...(options.port === undefined ? {} : { port: options.port }),
        compatibilityDate: COMPATIBILITY_DATE,
        // For the rules: which invocation a request belongs to.
        compatibilityFlags: [...new Set(["nodejs_als", ...(options.flags ?? [])])],
        bindings: { ...options.bindings },
        durableObjects: Object.fromEntries(
          Object.entries(options.objects ?? {}).map(([binding, className]) => [
            binding,
            { className, useSQLite: true },
          ]),
        ),
        durableObjectsPersist: join(folder, "objects"),
        // Log lines of the code under test, and workerd's own about objects that tests end.
        handleRuntimeStdio: (stdout: Flowing, stderr: Flowing) => {
          stdout.resume();
          stderr.resume();
        },
      },
      folder,
      options.folder === undefined,
    );
    await workerd.#miniflare.ready;
    return workerd;
  }

  /** Sends a request to the Worker. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const answer = await this.#miniflare.dispatchFetch(
      `http://worker.test${path}`,
      init as Parameters<Miniflare["dispatchFetch"]>[1],
    );
    return answer as unknown as Response;
  }

  /** Sends a request and reads its answer as JSON; fails unless it is a 2xx. */
  async json<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await this.fetch(path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 2000)}`);
    return JSON.parse(text) as T;
  }

  /** Fires the cron; answers `"ok"`, or `"exception"`. */
  async scheduled(cron = "* * * * *"): Promise<string> {
    const worker = (await this.#miniflare.getWorker()) as unknown as {
      scheduled(event: { cron: string }): Promise<{ outcome: string }>;
    };
    return (await worker.scheduled({ cron })).outcome;
  }

  /** What the invocations since the last call did. */
  records(): Promise<InvocationRecord[]> {
    return this.json<InvocationRecord[]>("/__rules");
  }

  /** Sets limits other than those it was started with; an endless one is `null`. Forgets what was recorded. */
  async setRules(limits: { readonly [Limit in "requests" | "connections" | "wallMs"]?: number | null }) {
    await this.json("/__rules", { method: "POST", body: JSON.stringify(limits) });
  }

  /** Ends workerd and starts it anew on the same objects. */
  async restart(): Promise<void> {
    await this.#miniflare.dispose();
    this.#miniflare = new Miniflare(this.#options);
    await this.#miniflare.ready;
  }

  async stop(): Promise<void> {
    await this.#miniflare.dispose();
    if (this.#ownFolder) rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function bundleOf(options: WorkerdOptions, folder: string): Promise<string> {
  const entry = resolve(options.entry);
  const classes = Object.values(options.objects ?? {});
  const install = join(folder, "install.ts");
  const main = join(folder, "main.ts");
  writeFileSync(
    install,
    `import { install } from ${JSON.stringify(RULES)};\ninstall(${JSON.stringify(options.rules ?? {})});\n`,
  );
  writeFileSync(
    main,
    [
      `import ${JSON.stringify(install)};`,
      `import { handlerUnderRules, objectUnderRules } from ${JSON.stringify(RULES)};`,
      `import * as entry from ${JSON.stringify(entry)};`,
      "export default handlerUnderRules(entry.default);",
      ...classes.map((name) => `export class ${name} extends objectUnderRules(entry.${name}) {}`),
    ].join("\n"),
  );
  const built = await Bun.build({
    entrypoints: [main],
    target: "browser",
    format: "esm",
    conditions: ["workerd", "worker"],
    external: ["cloudflare:*", "node:*"],
  });
  const [output] = built.outputs;
  if (!built.success || output === undefined) {
    throw new Error(`Cannot bundle ${entry}: ${built.logs.map(String).join("; ").slice(0, 2000)}`);
  }
  return await output.text();
}
