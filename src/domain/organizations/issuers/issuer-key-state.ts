/** The part of a key that its state depends on. */
export interface IssuerKeyTimes {
  readonly signsFrom: Date;
  /** The end of the publication of the key; null while no later key replaces it. */
  readonly publishedUntil: Date | null;
}

/** The states of a published key: it will sign, it signs, or it only verifies what it signed. */
export type IssuerKeyState = 'next' | 'signing' | 'retired';

/**
 * The hours for which a planned key is published before it signs: verifiers cache a JWK Set for at
 * most a day.
 */
export const PUBLISHED_BEFORE_HOURS = 24;

/**
 * The minutes for which a key stays published after it signed: a token is valid for 5 minutes, and
 * clocks and caches differ.
 */
export const PUBLISHED_AFTER_MINUTES = 60;

/**
 * Returns the keys that are published at a time, with their states. One key signs: the latest whose
 * time has come. The statement that issues a token has the same rule (`signingKeyOf`).
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
