/** In milliseconds. */
export interface Pace {
  readonly first: number;
  readonly longest: number;
}

/** How long to wait between tries, for ever: each pause is twice the one before it, up to the longest. */
export function* pauses({ first, longest }: Pace): Generator<number, never> {
  for (let pause = first; ; pause = Math.min(pause * 2, longest)) yield pause;
}
