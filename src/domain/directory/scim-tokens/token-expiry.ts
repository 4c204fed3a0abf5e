/** The milliseconds before the end of a token in which pages and the API warn of the end. */
const NOTICE = 30 * 86_400_000;

/** Returns true for a token that ends within 30 days. */
export function expiresSoon({ expiresAt }: { readonly expiresAt: Date }, now: Date): boolean {
  return expiresAt.getTime() - now.getTime() <= NOTICE;
}
