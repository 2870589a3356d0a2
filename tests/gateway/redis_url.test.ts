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
