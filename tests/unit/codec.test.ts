import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { byteLength, decodeBody, encodeBody, toBytes, toText } from "../../src/codec.ts";
import { describeIssues } from "../../src/schemas.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

describe("codecs", () => {
  test("JSON comes back as it was, for all that has a JSON form", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(decodeBody("json", encodeBody("json", value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("text comes back as it was, as a string or as its bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(decodeBody("text", encodeBody("text", text))).toBe(text);
        expect(decodeBody("text", toBytes(text))).toBe(text);
        expect(byteLength(text)).toBe(toBytes(text).length);
      }),
    );
    expect(toText(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]))).toBe("\ufeffa");
  });

  test("bytes come back as they were", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeBody("bytes", encodeBody("bytes", bytes))).toEqual(bytes);
        expect(byteLength(bytes)).toBe(bytes.length);
      }),
    );
  });

  test("errors never quote the body", () => {
    for (const act of [
      () => decodeBody("json", '{"secret": nonsense'),
      () => decodeBody("text", new Uint8Array([0x73, 0xff])),
      () => decodeBody("json", ""),
    ]) {
      expect(act).toThrow(TypeError);
      expect(act).not.toThrow(/secret|nonsense/);
    }
  });
});

describe("where a body does not fit", () => {
  test("only places are named, each once, five at most", () => {
    expect(describeIssues([{ message: "secret" }])).toBe(
      "The body does not fit the queue's schema at: the whole body",
    );
    expect(
      describeIssues([
        { message: "secret", path: ["a", 0, { key: "b" }] },
        { message: "secret", path: ["a", 0, "b"] },
        { message: "secret", path: [Symbol("s")] },
      ]),
    ).toBe("The body does not fit the queue's schema at: a.0.b, […]");
    expect(describeIssues(Array.from({ length: 9 }, (_, i) => ({ message: "", path: [i] })))).toEndWith(
      "0, 1, 2, 3, 4 and 4 more",
    );
  });
});
