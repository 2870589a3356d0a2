/** Where a Redis is and how to enter it, out of `redis://user:password@host:port/database`. */
export interface RedisAddress {
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username: string;
  readonly password: string;
  readonly database: number;
}

/**
 * Reads a Redis URL. Default port 6379, default database 0.
 *
 * @throws {TypeError} when it is none; the text never repeats the URL, which may hold a password.
 */
export function parseRedisUrl(text: string): RedisAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "redis:" && url.protocol !== "rediss:")) {
    throw new TypeError(
      "Cannot read the Redis URL: it must look like redis://host:6379 or rediss://host:6379",
    );
  }
  // What other clients read from there would be passed over here, and another database written to.
  if (url.search !== "" || url.hash !== "") {
    throw new TypeError(
      "Cannot read the Redis URL: it has a query or a fragment; give the database's number as its path, as in redis://host:6379/0",
    );
  }
  const path = url.pathname.slice(1);
  const database = Number(path);
  if (!/^\d*$/.test(path) || !Number.isSafeInteger(database)) {
    throw new TypeError(
      "Cannot read the Redis URL: its path must be a database's number, as in redis://host:6379/0",
    );
  }
  return {
    hostname: url.hostname === "" ? "127.0.0.1" : url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 6379 : Number(url.port),
    tls: url.protocol === "rediss:",
    username: decoded(url.username),
    password: decoded(url.password),
    database,
  };
}

function decoded(credential: string): string {
  try {
    return decodeURIComponent(credential);
  } catch {
    throw new TypeError(
      "Cannot read the Redis URL: its user or password has a % that begins no escape; write a % itself as %25",
    );
  }
}
