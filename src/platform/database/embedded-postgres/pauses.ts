/** The first and the longest pause in milliseconds. */
export interface Pace {
  readonly first: number;
  readonly longest: number;
}

/** Generates the pauses between attempts, without end: each pause is twice the previous one, up to the longest. */
export function* pauses({ first, longest }: Pace): Generator<number, never> {
  for (let pause = first; ; pause = Math.min(pause * 2, longest)) yield pause;
}
