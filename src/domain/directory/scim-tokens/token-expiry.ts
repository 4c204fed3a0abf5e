/**
 * The milliseconds before the expiry of a token during which pages and the API warn of the expiry.
 */
const NOTICE = 30 * 86_400_000;

/** Returns true for a SCIM or API token that expires within 30 days or has expired. */
export function expiresSoon({ expiresAt }: { readonly expiresAt: Date }, now: Date): boolean {
  return expiresAt.getTime() - now.getTime() <= NOTICE;
}
