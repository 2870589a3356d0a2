/** The WebSocket frames of the Deno Platform: any messages, in any parts, cut anywhere; and what a server must not send. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  bytesFrame,
  closeFrame,
  FrameError,
  type Incoming,
  MAX_MESSAGE_BYTES,
  MessageReader,
  pongFrame,
  textFrame,
} from "../../../runtimes/deno/websocket_frames.ts";

/** A frame as a server writes it, by the book. */
function serverFrame(opcode: number, payload: Uint8Array, final = true): number[] {
  const { length } = payload;
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  return [(final ? 0x80 : 0) | opcode, ...size, ...payload];
}

const utf8 = (text: string) => new TextEncoder().encode(text);

interface Message {
  readonly isText: boolean;
  readonly bytes: Uint8Array;
  /** Where it is cut into parts, as fractions. */
  readonly cuts: readonly number[];
  /** Whether a ping comes between the parts. */
  readonly pinged: boolean;
}

const message: fc.Arbitrary<Message> = fc
  .record({
    isText: fc.boolean(),
    size: fc.constantFrom(0, 1, 5, 124, 125, 126, 127, 300, 65_535, 65_536, 70_000),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
    pinged: fc.boolean(),
    fill: fc.string({ unit: "binary", minLength: 1, maxLength: 4 }),
  })
  .map(({ isText, size, fill, ...rest }) => {
    const text = fill.repeat(Math.ceil(size / utf8(fill).length));
    return { ...rest, isText, bytes: isText ? utf8(text) : utf8(text).subarray(0, size) };
  });

function written({ isText, bytes, cuts, pinged }: Message): number[] {
  const places = [...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b), bytes.length];
  let from = 0;
  return places.flatMap((to, i) => {
    const part = bytes.subarray(from, to);
    from = to;
    const opcode = i > 0 ? 0 : isText ? 1 : 2;
    const frame = serverFrame(opcode, part, i === places.length - 1);
    return pinged && i > 0 ? [...serverFrame(9, utf8("p")), ...frame] : frame;
  });
}

function plain(incoming: Incoming): unknown {
  if (incoming.kind === "text") return ["text", incoming.text];
  if (incoming.kind === "bytes") return ["bytes", Buffer.from(incoming.bytes).toString("hex")];
  return [incoming.kind];
}

describe("reading", () => {
  test("messages come whole and in order, however they are cut", () => {
    fc.assert(
      fc.property(
        fc.array(message, { minLength: 1, maxLength: 5 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 40_000 })),
        (messages, sizes) => {
          const stream = Uint8Array.from(messages.flatMap(written));
          const reader = new MessageReader();
          const got: unknown[] = [];
          for (let at = 0; at < stream.length; ) {
            const end = at + (sizes.next().value as number);
            got.push(...reader.push(stream.slice(at, end)).map(plain));
            at = end;
          }
          const expected = messages.flatMap(({ isText, bytes, cuts, pinged }) => [
            ...(pinged ? cuts.map(() => ["ping"]) : []),
            isText
              ? ["text", new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)]
              : ["bytes", Buffer.from(bytes).toString("hex")],
          ]);
          expect(got).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("byte by byte too", () => {
    const reader = new MessageReader();
    const stream = [
      ...serverFrame(1, utf8("é"), false),
      ...serverFrame(10, utf8("x")),
      ...serverFrame(0, utf8("😀")),
    ];
    const got = stream.flatMap((byte) => reader.push(Uint8Array.of(byte)));
    expect(got).toEqual([{ kind: "pong" }, { kind: "text", text: "é😀" }]);
  });

  test("a close has its code and reason, or 1005", () => {
    const payload = Uint8Array.of(0x0b, 0xb8, ...utf8("bye"));
    expect(new MessageReader().push(Uint8Array.from(serverFrame(8, payload)))).toEqual([
      { kind: "close", code: 3000, reason: "bye" },
    ]);
    expect(new MessageReader().push(Uint8Array.from(serverFrame(8, new Uint8Array(0))))).toEqual([
      { kind: "close", code: 1005, reason: "" },
    ]);
  });

  const WRONG: readonly (readonly [string, number, readonly number[]])[] = [
    ["a masked frame", 1002, [0x81, 0x81, 0, 0, 0, 0, 65]],
    ["bits nobody agreed on", 1002, [0xc1, 1, 65]],
    ["an unknown kind", 1002, [0x83, 0]],
    ["an unknown control frame", 1002, [0x8b, 0]],
    ["a ping in parts", 1002, [0x09, 0]],
    ["a ping that is too long", 1002, [0x89, 126, 0, 200]],
    ["a continuation of nothing", 1002, [0x80, 1, 65]],
    ["a message within another", 1002, [0x01, 1, 65, 0x81, 1, 65]],
    ["a text that is not UTF-8", 1007, [0x81, 2, 0xff, 0xfe]],
    ["half a code", 1002, [0x88, 1, 3]],
    ["a code that may not be sent", 1002, [0x88, 2, 0x03, 0xee]],
    ["a message above the limit", 1009, [0x82, 127, 0, 0, 0, 0, 0xff, 0, 0, 0]],
    ["a length beyond all numbers", 1009, [0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]],
  ];
  for (const [what, code, bytes] of WRONG) {
    test(`${what} ends it with ${code}`, () => {
      let error: unknown;
      try {
        new MessageReader().push(Uint8Array.from(bytes));
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(FrameError);
      expect((error as FrameError).code).toBe(code);
    });
  }

  test("the limit counts over the parts of a message", () => {
    const reader = new MessageReader();
    const half = new Uint8Array(MAX_MESSAGE_BYTES / 2 + 1);
    const head = (opcode: number) => {
      const bytes = new Uint8Array(10);
      bytes.set([opcode, 127]);
      new DataView(bytes.buffer).setBigUint64(2, BigInt(half.length));
      return bytes;
    };
    reader.push(head(0x02));
    reader.push(half);
    expect(() => reader.push(head(0x00))).toThrow("larger than");
  });
});

/** Reads one client frame, by the book. */
function readBack(frame: Uint8Array): { first: number; payload: Uint8Array } {
  expect(frame[1]! & 0x80).toBe(0x80);
  const short = frame[1]! & 0x7f;
  const view = new DataView(frame.buffer, frame.byteOffset);
  const size = short < 126 ? 0 : short === 126 ? 2 : 8;
  const length = size === 0 ? short : size === 2 ? view.getUint16(2) : Number(view.getBigUint64(2));
  const mask = frame.subarray(2 + size, 6 + size);
  const payload = frame.subarray(6 + size).map((byte, i) => byte ^ mask[i % 4]!);
  expect(payload.length).toBe(length);
  return { first: frame[0]!, payload };
}

describe("writing", () => {
  const mask = Uint8Array.of(1, 2, 250, 77);

  test("frames are final, masked, of the shortest length, and hold what was given", () => {
    for (const size of [0, 1, 125, 126, 65_535, 65_536, 100_000]) {
      const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256);
      const frame = bytesFrame(bytes, mask);
      const { first, payload } = readBack(frame);
      expect(first).toBe(0x82);
      expect(Buffer.from(payload).equals(Buffer.from(bytes))).toBe(true);
      expect(frame.length - size).toBe(size < 126 ? 6 : size < 65_536 ? 8 : 14);
    }
    expect(readBack(textFrame("é😀", mask))).toEqual({ first: 0x81, payload: utf8("é😀") });
    expect(readBack(pongFrame(utf8("p"), mask))).toEqual({ first: 0x8a, payload: utf8("p") });
    expect(readBack(closeFrame(1000, "é", mask))).toEqual({
      first: 0x88,
      payload: Uint8Array.of(3, 232, ...utf8("é")),
    });
    expect(readBack(closeFrame(undefined, "left out", mask)).payload.length).toBe(0);
  });
});
