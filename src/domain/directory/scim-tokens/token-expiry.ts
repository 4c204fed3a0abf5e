/** The milliseconds before its end from which a token is named on pages and in the API. */
const NOTICE = 30 * 86_400_000;

/** Returns true for a token that ends within 30 days. */
export function expiresSoon({ expiresAt }: { readonly expiresAt: Date }, now: Date): boolean {
  return expiresAt.getTime() - now.getTime() <= NOTICE;
}
