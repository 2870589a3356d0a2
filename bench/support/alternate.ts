/**
 * Runs contenders in turn, so that whatever else the machine does falls on all of them alike.
 *
 * @module
 */

/** Answers what each contender's rounds brought, in the order of the contenders. Each round goes through them the other way round. */
export async function alternate<T>(
  rounds: number,
  contenders: readonly (() => Promise<T>)[],
): Promise<T[][]> {
  const results: T[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    const order = contenders.map((_contender, at) => (round % 2 === 0 ? at : contenders.length - 1 - at));
    for (const at of order) results[at]?.push(await (contenders[at] as () => Promise<T>)());
  }
  return results;
}
