/** Our own command-line client: the only OAuth client whose tokens open APIs of ours. */
export const CLI_CLIENT_ID = 'svc-cli';

/** The scope of organization admins, and of nobody else. */
export const ADMIN_SCOPE = 'svc:admin';

/** What an OAuth access token is good for, and what it is bound to. */
export interface AccessToken {
  readonly clientId: string;
  readonly scope: ReadonlySet<string>;
  /** It is meant for a resource server, which none of our own APIs is. */
  readonly hasAudience: boolean;
  /** The thumbprint of the DPoP key that must prove its possession (RFC 9449 §6). */
  readonly jkt: string | null;
  /** The thumbprint of the client certificate it may be used with (RFC 8705 §3.1). */
  readonly x5t: string | null;
}

/** Reads what the OAuth library keeps of an access token. A binding that cannot be read binds to nothing there is. */
export function accessToken(
  clientId: string,
  payload: Readonly<Record<string, unknown>> | null,
): AccessToken {
  const { scope, aud, jkt, 'x5t#S256': x5t } = payload ?? {};
  return {
    clientId,
    scope: new Set(typeof scope === 'string' ? scope.split(' ') : []),
    hasAudience: aud !== undefined,
    jkt: binding(jkt),
    x5t: binding(x5t),
  };
}

function binding(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : '';
}
