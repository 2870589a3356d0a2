/**
 * Workers: from starting workerd, the bundle at hand, to the first claim of its first request.
 *
 * @module
 */
import { resolve } from "node:path";
import { Miniflare } from "miniflare";
import { params, tell } from "../support/contender.ts";
import { median } from "../support/figures.ts";
import type { FirstClaimParams } from "../support/first_claim.ts";

/** How long each took, in milliseconds. */
export interface WorkerdResult {
  readonly nothingMs: number;
  readonly claimMs: number;
  readonly bundleBytes: number;
}

const ENTRY = resolve(import.meta.dir, "../support/cold_worker.ts");

const options = params<FirstClaimParams>();
const built = await Bun.build({
  entrypoints: [ENTRY],
  target: "browser",
  format: "esm",
  minify: true,
  conditions: ["workerd", "worker"],
  external: ["cloudflare:*", "node:*"],
});
const [output] = built.outputs;
if (!built.success || output === undefined)
  throw new Error(`Cannot bundle: ${built.logs.map(String).join("; ")}`);
const script = await output.text();

async function startTo(body: FirstClaimParams | null): Promise<number> {
  const from = performance.now();
  const miniflare = new Miniflare({ modules: true, script, compatibilityDate: "2026-04-01" });
  const response = await miniflare.dispatchFetch("http://worker.test/", {
    method: "POST",
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const ms = performance.now() - from;
  await miniflare.dispose();
  if (!response.ok)
    throw new Error(`Cannot go on: the Worker answered ${response.status}: ${text.slice(0, 500)}`);
  return ms;
}

// The first start reads everything from disk.
await startTo(null);
const nothing: number[] = [];
const claim: number[] = [];
for (let round = 0; round < 3; round++) {
  nothing.push(await startTo(null));
  claim.push(await startTo(options));
}
tell({
  nothingMs: median(nothing),
  claimMs: median(claim),
  bundleBytes: script.length,
} satisfies WorkerdResult);
