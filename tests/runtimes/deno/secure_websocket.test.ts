/** The Deno Platform's WebSocket over TLS, against a server whose certificate it is told to trust, and one that it is not. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DENO, denoEnv, ROOT } from "./process.ts";

const PROGRAM = join(import.meta.dir, "programs/secure_socket.ts");

let folder: string;
let server: Bun.Server<undefined>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eddy-tls-"));
  const made = Bun.spawnSync(
    [
      ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
      ...["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"],
    ],
    { cwd: folder, stderr: "pipe" },
  );
  expect([made.exitCode, made.exitCode === 0 ? "" : made.stderr.toString()]).toEqual([0, ""]);
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key: Bun.file(join(folder, "key.pem")), cert: Bun.file(join(folder, "cert.pem")) },
    fetch(request, self) {
      return self.upgrade(request) ? undefined : new Response(null, { status: 426 });
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  });
});
afterAll(async () => {
  await server.stop(true);
  await rm(folder, { recursive: true });
});

async function run(env: Record<string, string>): Promise<string[]> {
  const child = Bun.spawn(
    [
      DENO,
      "run",
      "--no-check",
      "--no-prompt",
      "--allow-net=localhost",
      PROGRAM,
      `wss://localhost:${server.port}/`,
    ],
    { cwd: ROOT, env: denoEnv(env), stdio: ["ignore", "pipe", "inherit"] },
  );
  const out = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return out.trim().split("\n");
}

test("it speaks with a server whose certificate it trusts", async () => {
  expect(await run({ DENO_CERT: join(folder, "cert.pem") })).toEqual(["over TLS", "1000"]);
});

test("it does not with another", async () => {
  expect(await run({})).toEqual(["error", "1006"]);
});
