/** An application with the redirect URIs for which an admin approved it. */
export interface LaunchedApplication {
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The redirect URIs that an admin approved; null without an approval. */
  readonly approvedUris: readonly string[] | null;
}

/**
 * Returns the URL at which a browser starts a sign-in to an application (OpenID Connect Core §4),
 * or null. Any member may register an application, even with the URL of a hostile site. So the URL
 * is shown as a link only if an admin approved a redirect URI with the same origin.
 */
export function launchAddress({ metadata, approvedUris }: LaunchedApplication): string | null {
  const address = metadata['initiate_login_uri'];
  if (typeof address !== 'string' || !isStartAddress(address)) return null;
  return isInOriginOf(address, approvedUris ?? []) ? address : null;
}

/** Returns true for an https URL in printable ASCII without a user name or a password in it. */
export function isStartAddress(address: string): boolean {
  const url = /^[!-~]+$/.test(address) ? URL.parse(address) : null;
  return url?.protocol === 'https:' && url.username === '' && url.password === '';
}

/** Returns true if a URL has the same origin as one of the redirect URIs. */
export function isInOriginOf(address: string, redirectUris: readonly string[]): boolean {
  const origin = originOf(address);
  return origin !== undefined && redirectUris.some((uri) => originOf(uri) === origin);
}

/**
 * Returns the origin of a URL; undefined if it cannot be parsed, or if its scheme has no origin.
 */
function originOf(address: string): string | undefined {
  const origin = URL.parse(address)?.origin;
  return origin === 'null' ? undefined : origin;
}
