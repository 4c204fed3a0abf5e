/** An application with the addresses that an admin approved. */
export interface LaunchedApplication {
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The redirect URIs that an admin approved; null without an approval. */
  readonly approvedUris: readonly string[] | null;
}

/**
 * Returns the address at which a sign-in to an application starts (OpenID Connect Core §4), or
 * null. Members may register applications, so only an origin that an admin approved is a link.
 */
export function launchAddress({ metadata, approvedUris }: LaunchedApplication): string | null {
  const address = metadata['initiate_login_uri'];
  if (typeof address !== 'string' || !isStartAddress(address)) return null;
  return isInOriginOf(address, approvedUris ?? []) ? address : null;
}

/** Checks that a start address is an https address of a host, without user information. */
export function isStartAddress(address: string): boolean {
  const url = /^[!-~]+$/.test(address) ? URL.parse(address) : null;
  return url?.protocol === 'https:' && url.username === '' && url.password === '';
}

/** Checks that an address has the origin of one of the redirect URIs. */
export function isInOriginOf(address: string, redirectUris: readonly string[]): boolean {
  const origin = originOf(address);
  return origin !== undefined && redirectUris.some((uri) => originOf(uri) === origin);
}

/** Returns the origin of an address; undefined for a scheme that has none. */
function originOf(address: string): string | undefined {
  const origin = URL.parse(address)?.origin;
  return origin === 'null' ? undefined : origin;
}
