/**
 * Whether a signature counter is as it must be (WebAuthn §6.1.1): it grows with every signature, or else the key has
 * none and reports 0 for ever. Anything else may be a clone. This is the rule; the statement that applies it to the
 * stored row, where two logins may race, restates it in SQL.
 *
 * @param stored what the last accepted ceremony reported
 * @param reported what this one reports
 */
export function counterGrows(stored: number, reported: number): boolean {
  return (stored === 0 && reported === 0) || reported > stored;
}
