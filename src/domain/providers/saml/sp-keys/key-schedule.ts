/** The dates of a key with which this service signs SAML requests, in milliseconds since 1970. */
export interface KeyDates {
  /** The number of the key. The first key has 1, and each later one the next number. */
  readonly number: number;
  readonly madeAt: number;
  /** The time at which the certificate of the key expires. */
  readonly notAfter: number;
}

/** The decision which key signs and which keys are published at a time. */
export interface KeyPlan {
  /** The number of the key that signs; undefined if there is no key. */
  readonly signing: number | undefined;
  /** The numbers of the keys whose certificates the metadata of this service contains. */
  readonly published: readonly number[];
  /** True if it is time to make the next key. */
  readonly isDue: boolean;
}

const DAY = 86_400_000;
/** Milliseconds for which a certificate is valid: three years. */
export const CERTIFICATE_LIFETIME = 1096 * DAY;
/**
 * Milliseconds for which the next key is published before it signs, so that providers have time to
 * import it.
 */
export const PUBLISHED_BEFORE = 7 * DAY;
/**
 * Milliseconds from the first signature of the next key to the expiry of the previous certificate.
 */
const OVERLAP = 30 * DAY;

/**
 * Decides which key signs SAML requests and which keys are published. The first key signs at once.
 * Each later one is published for 7 days first, so that providers can import it. A key stays
 * published until its certificate expires, because a provider may still know only this key.
 */
export function planOf(keys: readonly KeyDates[], now: number): KeyPlan {
  const oldestFirst = keys.toSorted((a, b) => a.number - b.number);
  const valid = oldestFirst.filter(({ notAfter }) => notAfter > now);
  const newest = valid.at(-1);
  const ready = valid.filter(({ madeAt }) => madeAt + PUBLISHED_BEFORE <= now);
  return {
    // If no key has been published for long enough, the oldest key signs, because most providers
    // know it.
    signing: (ready.at(-1) ?? valid[0])?.number,
    published: valid.map(({ number }) => number),
    isDue: !newest || newest.notAfter - OVERLAP - PUBLISHED_BEFORE <= now,
  };
}
