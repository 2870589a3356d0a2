/**
 * A real Redis behind the development gateway, in this process: what a broker over HTTP is tested against.
 *
 * @module
 */
import { RedisBroker, type RedisBrokerOptions } from "../../adapters/redis/mod.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { type RedisOptions, type RedisServer, startRedis } from "./redis_server.ts";

export interface RedisOverHttp {
  readonly server: RedisServer;
  readonly gateway: Gateway;
  /** A broker of its own connection. */
  connect(options?: Partial<RedisBrokerOptions>): RedisBroker;
  stop(): Promise<void>;
}

/** Starts both; `stop` ends both. */
export async function startRedisOverHttp(
  redis: RedisOptions = {},
  options: Partial<GatewayOptions> = {},
): Promise<RedisOverHttp> {
  const server = await startRedis(redis);
  const gateway = startGateway({ redis: server.url, token: "test-token", ...options });
  return {
    server,
    gateway,
    // Most servers of tests keep nothing on disk, and would each be warned of.
    connect: (more = {}) =>
      new RedisBroker({ url: gateway.url, token: gateway.token, onWarning: () => {}, ...more }),
    async stop() {
      await gateway.stop();
      await server.stop();
    },
  };
}
