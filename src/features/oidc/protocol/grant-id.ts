import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { systemRandom } from '#platform/clock/random.js';
import type { Grant, Provider } from './library.js';

const SEPARATOR = '.';

/**
 * Makes the id of a new grant. It contains the id of the session, since the OAuth library's grant
 * has no field for the session.
 */
export function newGrantId(sessionId: string, random = systemRandom): string {
  return `${sessionId}${SEPARATOR}${random.token(16)}`;
}

/** Returns the id of the session that the id of a grant contains. */
export function sessionIdOfGrant(grantId: string): string {
  return grantId.slice(0, grantId.indexOf(SEPARATOR));
}

/**
 * Makes an empty grant of a user to a client, for the user's session. The caller saves it.
 *
 * @param expiresIn the seconds until the grant ends; undefined for the end of the session
 */
export function newGrant(
  provider: Provider,
  { userId, sessionId }: Pick<ResourceOwner, 'userId' | 'sessionId'>,
  clientId: string,
  expiresIn?: number,
): Grant {
  const properties = {
    jti: newGrantId(sessionId),
    accountId: userId,
    clientId,
    ...(expiresIn === undefined ? {} : { expiresIn }),
  };
  return new provider.Grant(properties);
}
