import type { ClientSecret } from './clients.repository.js';

/** The milliseconds before the expiry of a secret during which a page warns of the expiry. */
const NOTICE = 30 * 86_400_000;

/**
 * Returns true for an expiry within the next 30 days or in the past; false for a secret that never
 * expires (null).
 */
export function endsSoon(end: Date | null, now: Date): boolean {
  return end !== null && end.getTime() - now.getTime() <= NOTICE;
}

/** Returns the latest expiry of some secrets; null if there is no secret, or one never expires. */
export function lastSecretEnd(secrets: readonly ClientSecret[]): Date | null {
  const ends = secrets.flatMap(({ expiresAt }) => expiresAt ?? []);
  if (ends.length < secrets.length || ends.length === 0) return null;
  return new Date(Math.max(...ends.map((end) => end.getTime())));
}
