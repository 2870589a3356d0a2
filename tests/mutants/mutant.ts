/**
 * A mutant: the project with one guard taken out. Some test must go red for it.
 *
 * @module
 */
export interface Mutant {
  readonly name: string;
  /** What is lost with the guard. */
  readonly loses: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly search: string;
  readonly replace: string;
  /** The test files of which one at least must fail. */
  readonly tests: readonly string[];
}
