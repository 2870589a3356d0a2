import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { type StandardSchema, whyNot } from "../../src/schemas.ts";
import { run } from "../support/handling.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

describe("bodies", () => {
  test('text stays text: "123" is no number, "null" is not nothing', async () => {
    const bodies = ["123", "null", "", "true", '{"a":1}', "ünïcödé 😀"];
    const seen: unknown[] = [];
    await run((job) => seen.push(job.body), {}, { bodies, queue: { codec: "text" } });
    expect(seen).toEqual(bodies);
  });

  test("bytes stay bytes, whatever they are", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const seen: unknown[] = [];
    const { verdicts } = await run(
      (job) => seen.push(job.body),
      {},
      { bodies: [bytes], queue: { codec: "bytes" } },
    );
    expect(seen).toEqual([bytes]);
    expect(verdicts).toEqual(["ack"]);
  });

  test("JSON is parsed, and large whole numbers keep their digits in job.text", async () => {
    const body = '{"id":9007199254740993123,"list":[1,"2",null]}';
    let text = "";
    await run(
      (job) => {
        text = job.text;
        expect((job.body as { list: unknown[] }).list).toEqual([1, "2", null]);
      },
      {},
      { bodies: [body] },
    );
    expect(text).toBe(body);
  });

  test("are let through by no schema that answers otherwise than with a value or issues", async () => {
    const odd: unknown[] = [true, false, 5, "yes", {}, { ok: true }, () => {}, { issues: [] }];
    for (const answer of [...odd, ...odd.map((one) => Promise.resolve(one))]) {
      const schema = { "~standard": { version: 1, vendor: "test", validate: () => answer } };
      let called = 0;
      const { dead } = await run(
        () => {
          called += 1;
        },
        {},
        { bodies: ['"secret"'], queue: { body: schema as unknown as StandardSchema } },
      );
      expect(called).toBe(0);
      const given = await answer;
      const says =
        typeof given === "object" && given !== null && "issues" in given
          ? "The body does not fit the queue's schema at: the whole body"
          : "The queue's schema answered with neither a value nor issues; mend the schema";
      expect(dead).toEqual([says]);
      const { reason, issues } = (await whyNot(schema as unknown as StandardSchema, "secret")) ?? {};
      expect({ reason, issues }).toEqual({ reason: says, issues: [{ path: "", message: says }] });
    }
    const nothing = { "~standard": { version: 1, vendor: "test", validate: () => ({ value: undefined }) } };
    expect(await whyNot(nothing as unknown as StandardSchema, "secret")).toBeUndefined();
  });

  test("that cannot be read are dead letters at once, unrun and unquoted, and the rest runs", async () => {
    const bodies = ['{"secret":', new Uint8Array([0xff, 0xfe]), "5"];
    const seen: unknown[] = [];
    const { dead, verdicts } = await run((job) => seen.push(job.body), { prefetch: 4 }, { bodies });
    expect(seen).toEqual([5]);
    expect(verdicts.toSorted()).toEqual(["ack", "dead", "dead"]);
    expect(dead[0]).toContain("malformed");
    expect(dead[1]).toContain("UTF-8");
    expect(dead.join()).not.toContain("secret");
  });

  test("that do not fit the schema are dead letters with the place, not the value", async () => {
    const schema = v.object({
      to: v.pipe(v.string(), v.email()),
      lines: v.array(v.object({ n: v.number() })),
    });
    const bodies = [
      '{"to":"my secret","lines":[{"n":1},{"n":"another secret"}]}',
      '"the third secret"',
      '{"to":"a@b.example","lines":[]}',
    ];
    const seen: unknown[] = [];
    const { dead } = await run((job) => seen.push(job.body), {}, { bodies, queue: { body: schema } });
    expect(seen).toEqual([{ to: "a@b.example", lines: [] }]);
    expect(dead).toEqual([
      "The body does not fit the queue's schema at: to, lines.1.n",
      "The body does not fit the queue's schema at: the whole body",
    ]);
  });

  test("are what the schema makes of them", async () => {
    const seen: unknown[] = [];
    const schema = v.pipe(
      v.string(),
      v.transform((text) => text.length),
    ) as unknown as StandardSchema<unknown, unknown>;
    await run((job) => seen.push(job.body), {}, { bodies: ['"four"'], queue: { body: schema } });
    expect(seen).toEqual([4]);
  });

  const schemas: [string, (value: unknown) => unknown, readonly string[]][] = [
    ["answers later", async (value) => ({ value }), ["ack"]],
    ["answers no later", async () => ({ issues: [{ message: "no" }] }), ["dead"]],
    [
      "throws",
      () => {
        throw new Error("a secret");
      },
      ["dead"],
    ],
    ["rejects", () => Promise.reject(new Error("a secret")), ["dead"]],
    ["answers nothing", () => undefined, ["dead"]],
    ["answers nothing later", async () => undefined, ["dead"]],
  ];
  for (const [what, validate, verdicts] of schemas) {
    test(`whose schema ${what}: ${verdicts}`, async () => {
      const body = { "~standard": { version: 1, vendor: "test", validate } } as StandardSchema<
        unknown,
        unknown
      >;
      const outcome = await run(() => {}, {}, { queue: { body } });
      expect(outcome.verdicts).toEqual([...verdicts]);
      expect(outcome.dead.join()).not.toContain("secret");
    });
  }

  test("whose schema needs its own this", async () => {
    class Own {
      readonly version = 1 as const;
      readonly vendor = "test";
      readonly limit = 3;
      validate(value: unknown) {
        return (value as number) > this.limit ? { issues: [{ message: "too much" }] } : { value };
      }
    }
    const outcome = await run(
      () => {},
      {},
      { bodies: ["2", "4"], queue: { body: { "~standard": new Own() } } },
    );
    expect(outcome.verdicts.toSorted()).toEqual(["ack", "dead"]);
    expect(outcome.dead[0]).toContain("does not fit");
  });
});
