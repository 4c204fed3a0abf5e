/** The dates of a key of the service provider, in milliseconds since 1970. */
export interface KeyDates {
  /** The number of the key; the first key has 1, and each later one the next number. */
  readonly number: number;
  readonly madeAt: number;
  /** The end of its certificate. */
  readonly notAfter: number;
}

/** The use of the keys at a moment. */
export interface KeyPlan {
  /** The number of the key that signs; undefined when there is no key. */
  readonly signing: number | undefined;
  /** The numbers of the keys whose certificates are in the metadata. */
  readonly published: readonly number[];
  /** True when the next key must be made. */
  readonly isDue: boolean;
}

const DAY = 86_400_000;
/** The milliseconds for which a certificate is valid: three years. */
export const CERTIFICATE_LIFETIME = 1096 * DAY;
/** The milliseconds for which the next key is published before it signs. */
export const PUBLISHED_BEFORE = 7 * DAY;
/** The milliseconds for which the next key signs before the certificate of its predecessor ends. */
const OVERLAP = 30 * DAY;

/**
 * Decides which key signs and which keys are published. The first key signs at once; each later one
 * is published for 7 days first. A key is published until its certificate ends, so that a provider
 * still knows it.
 */
export function planOf(keys: readonly KeyDates[], now: number): KeyPlan {
  const oldestFirst = keys.toSorted((a, b) => a.number - b.number);
  const valid = oldestFirst.filter(({ notAfter }) => notAfter > now);
  const newest = valid.at(-1);
  const ready = valid.filter(({ madeAt }) => madeAt + PUBLISHED_BEFORE <= now);
  return {
    // If no key has been published for long enough, the oldest one is the best known.
    signing: (ready.at(-1) ?? valid[0])?.number,
    published: valid.map(({ number }) => number),
    isDue: !newest || newest.notAfter - OVERLAP - PUBLISHED_BEFORE <= now,
  };
}
