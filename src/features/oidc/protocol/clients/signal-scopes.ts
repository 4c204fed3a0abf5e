import { isSignalScope, SIGNAL_SCOPES } from '#domain/oauth/shared-signals/receivers.repository.js';
import type { OwnMetadata } from '../client-metadata.js';
import { errors, type Client, type KoaContextWithOIDC, type ResourceServer } from '../library.js';
import { scopeWords } from '../scopes.js';

/**
 * Returns true if a request for client credentials asks only for scopes of signals, which are
 * security events about users. Many receivers send no `resource` (RFC 8707), so the scopes decide
 * which resource is meant.
 */
export function asksForSignals({ oidc: { params } }: KoaContextWithOIDC): boolean {
  const asked = scopeWords(params?.['scope'] as string | undefined);
  return asked.length > 0 && asked.every(isSignalScope);
}

/**
 * Refuses a token of client credentials for anything but signals, if the application has not
 * registered the grant type `client_credentials`.
 * @throws UnauthorizedClient in this case
 */
export function assertRegisteredGrant(client: Client & OwnMetadata): void {
  if (client.svc_signals !== 'only') return;
  throw new errors.UnauthorizedClient('the grant of this application is for signals alone');
}

/**
 * Returns the resource server for signals, which are security events about users. Its tokens are
 * opaque, because each use looks them up.
 *
 * @throws InvalidTarget for an application that no admin has allowed to receive signals
 * @throws InvalidScope for any other scope, and for a request without a scope
 */
export function signalServer(
  { oidc: { params } }: KoaContextWithOIDC,
  client: Client & OwnMetadata,
  resource: string,
): ResourceServer {
  if (client.svc_signals === undefined) {
    throw new errors.InvalidTarget('an admin must first allow this application to receive signals');
  }
  const known: ReadonlySet<string> = new Set(SIGNAL_SCOPES);
  const asked = scopeWords(params?.['scope'] as string | undefined);
  const unknown = asked.filter((scope) => !known.has(scope));
  if (unknown.length > 0 || asked.length === 0) {
    throw new errors.InvalidScope(
      `the scopes of signals are ${SIGNAL_SCOPES.join(' and ')}`,
      unknown.join(' '),
    );
  }
  return { scope: SIGNAL_SCOPES.join(' '), audience: resource, accessTokenFormat: 'opaque' };
}
