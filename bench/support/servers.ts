/**
 * The servers the benches run against, each a process of its own, as it would be in use.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RedisServer, startRedis } from "../../tests/support/redis_server.ts";
import { Child } from "./child.ts";

const TOKEN = "bench-token";

/** A redis-server with Redis over HTTP in front, two processes. Nothing is written to disk. */
export interface RedisHttp {
  readonly server: RedisServer;
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

export async function startRedisHttp(): Promise<RedisHttp> {
  const server = await startRedis();
  const gateway = new Child("gateway.ts", { redis: server.url, token: TOKEN }, { limitMs: 3_600_000 });
  try {
    const { url } = await gateway.next<{ url: string }>();
    return {
      server,
      url,
      token: TOKEN,
      async stop() {
        await gateway.end();
        await server.stop();
      },
    };
  } catch (error) {
    await gateway.end();
    await server.stop();
    throw error;
  }
}

/** A folder that is thrown away. */
export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), "eddy-bench-"));
  #files = 0;

  /** A path where no file is yet. */
  file(): string {
    this.#files += 1;
    return join(this.folder, `jobs-${this.#files}.db`);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
