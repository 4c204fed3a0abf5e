const DAY = 86_400_000;

/** The days until `security.txt` expires. RFC 9116 §2.5.5 recommends less than a year. */
const GOOD_FOR = 180;

/** The values that `security.txt` contains. */
export interface SecurityFacts {
  /** The URI for reports, with the scheme https, mailto or tel. */
  readonly contact: string;
  readonly baseUrl: string;
}

/**
 * Returns the text of `security.txt` (RFC 9116 §2.5). Its expiry is rounded to a day, so that the
 * text changes only once a day.
 */
export function securityText({ contact, baseUrl }: SecurityFacts, now: Date): string {
  const today = Math.floor(now.getTime() / DAY) * DAY;
  const expires = new Date(today + GOOD_FOR * DAY).toISOString().replace('.000Z', 'Z');
  return [
    `Contact: ${contact}`,
    `Expires: ${expires}`,
    'Preferred-Languages: en',
    `Canonical: ${baseUrl}/.well-known/security.txt`,
    '',
  ].join('\n');
}
