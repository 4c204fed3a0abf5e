/** The times of a signing key that decide its state. */
export interface IssuerKeyTimes {
  readonly signsFrom: Date;
  /** The time at which the publication of the key ends; null while no later key replaces it. */
  readonly publishedUntil: Date | null;
}

/**
 * The states of a published key. `next`: it will sign. `signing`: it signs. `retired`: it only
 * verifies tokens that it signed.
 */
export type IssuerKeyState = 'next' | 'signing' | 'retired';

/**
 * The hours for which a new key is published before it signs, because verifiers may cache the JWK
 * Set for a day.
 */
export const PUBLISHED_BEFORE_HOURS = 24;

/**
 * The minutes for which a key stays published after it has signed for the last time. A token is
 * valid for 5 minutes; the remaining minutes are for verifiers with wrong clocks or caches.
 */
export const PUBLISHED_AFTER_MINUTES = 60;

/**
 * Returns the keys that are published at a time, with their states. One key signs: the one with the
 * latest start that is not in the future. The statement that issues a token has the same rule
 * (`signingKeyOf`).
 */
export function publishedKeys<Key extends IssuerKeyTimes>(
  keys: readonly Key[],
  now: Date,
): (Key & { readonly state: IssuerKeyState })[] {
  const published = keys.filter(({ publishedUntil: end }) => end === null || end > now);
  const begun = published.filter(({ signsFrom }) => signsFrom <= now);
  const latest = begun.toSorted((a, b) => b.signsFrom.getTime() - a.signsFrom.getTime())[0];
  return published.map((key) => {
    const state = key === latest ? 'signing' : key.signsFrom > now ? 'next' : 'retired';
    return { ...key, state };
  });
}
