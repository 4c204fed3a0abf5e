import { randomBytes } from 'node:crypto';
import type { Grant, Provider } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';

const SEPARATOR = '.';

/** The id of a new grant: it names the session that the grant hangs on, since the library knows of none. */
export function newGrantId(sessionId: string): string {
  return `${sessionId}${SEPARATOR}${randomBytes(16).toString('base64url')}`;
}

/** The session a grant hangs on, by the grant's id. */
export function sessionIdOfGrant(grantId: string): string {
  return grantId.slice(0, grantId.indexOf(SEPARATOR));
}

/** A grant of a person to a client, on their session, with nothing in it yet; it is there once it is saved. */
export function newGrant(
  provider: Provider,
  { userId, sessionId }: Pick<ResourceOwner, 'userId' | 'sessionId'>,
  clientId: string,
): Grant {
  const properties = { jti: newGrantId(sessionId), accountId: userId, clientId };
  return new provider.Grant(properties);
}
