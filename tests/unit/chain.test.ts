import { expect, test } from "bun:test";
import fc from "fast-check";
import { Chain, Chained } from "../../src/chain.ts";

class Named extends Chained {
  readonly name: number;
  constructor(name: number) {
    super();
    this.name = name;
  }
}

test("a chain holds what a set would, in the same order", () => {
  const steps = fc.array(fc.record({ adds: fc.boolean(), at: fc.nat({ max: 9 }) }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const things = Array.from({ length: 10 }, (_, name) => new Named(name));
      const chain = new Chain<Named>();
      const set = new Set<Named>();
      for (const { adds, at } of all) {
        const thing = things[at] as Named;
        if (adds && !set.has(thing)) {
          chain.add(thing);
          set.add(thing);
        } else if (!adds) expect(chain.delete(thing)).toBe(set.delete(thing));
        expect(chain.all()).toEqual([...set]);
        expect(chain.size).toBe(set.size);
        expect(chain.find(({ name }) => name > 4)).toBe([...set].find(({ name }) => name > 4));
      }
      chain.clear();
      expect([chain.size, chain.all()]).toEqual([0, []]);
    }),
  );
});

test("what left refers to nothing that is still in, nor does what is in refer to it", () => {
  const chain = new Chain<Named>();
  const [first, second, third] = [new Named(1), new Named(2), new Named(3)];
  for (const thing of [first, second, third]) chain.add(thing);
  expect(chain.delete(second)).toBe(true);
  expect([second.before, second.after, second.chain]).toEqual([undefined, undefined, undefined]);
  expect([first.after, third.before]).toEqual([third, first]);
});

test("it takes nothing out of another chain", () => {
  const [one, other] = [new Chain<Named>(), new Chain<Named>()];
  const thing = new Named(1);
  one.add(thing);
  expect(other.delete(thing)).toBe(false);
  expect([one.size, other.size]).toEqual([1, 0]);
});
