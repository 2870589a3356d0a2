/** What a Redis URL is read as, and what is told of one that cannot be read. */
import { expect, test } from "bun:test";
import { parseRedisUrl } from "../../runtimes/bun/gateway/redis_url.ts";

test("escapes in user and password are undone", () => {
  expect(parseRedisUrl("redis://a%40b:50%25@host:1234/2")).toEqual({
    hostname: "host",
    port: 1234,
    tls: false,
    username: "a@b",
    password: "50%",
    database: 2,
  });
});

test("a % that begins no escape is told, and nothing of the URL is repeated", () => {
  for (const url of ["redis://user:hunter2%@host", "redis://hunter2%zz:p@host", "redis://:hunter2%ff@host"]) {
    const read = () => parseRedisUrl(url);
    expect(read).toThrow(TypeError);
    expect(read).toThrow("write a % itself as %25");
    expect(read).not.toThrow("hunter2");
  }
});

test("a database is a number in the path and nothing else: what would be passed over is told", () => {
  expect(parseRedisUrl("redis://host").database).toBe(0);
  expect(parseRedisUrl("redis://host/").database).toBe(0);
  expect(parseRedisUrl("redis://host/15").database).toBe(15);
  for (const end of ["/1e1", "/0x10", "/ 1", "/-1", "/1.5", "/a", "/1/2", "/%31", "/9007199254740993"]) {
    expect(() => parseRedisUrl(`redis://u:hunter2@host${end}`)).toThrow("must be a database's number");
  }
  for (const end of ["?db=3", "/1?db=3", "#3", "/?protocol=3"]) {
    expect(() => parseRedisUrl(`redis://u:hunter2@host${end}`)).toThrow("has a query or a fragment");
    expect(() => parseRedisUrl(`redis://u:hunter2@host${end}`)).not.toThrow("hunter2");
  }
});
