import { Logger } from '@nestjs/common';
import {
  authenticateApiToken,
  type ApiScope,
  type Program,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { challengeOf, refusedToken } from './access-token.js';

/**
 * Returns the access rule of a route for programs. Only a token in the Authorization header opens
 * the route, so that no web page can call it with the cookie of a user.
 */
export function forPrograms(scope: ApiScope) {
  return { session: 'program', origin: 'any', scope, headerOnly: true } as const;
}

const security = new Logger('security');

/**
 * Finds the program by the API token of a request. The token must be valid, be allowed from the IP
 * address of the request, and have the scope of the route. A wrong token and a wrong IP address get
 * the same refusal, so that a thief does not learn that a stolen token is valid. The log names the
 * wrong IP address, at most once an hour for each token.
 *
 * @throws DomainError unauthenticated, insufficient_scope
 */
export async function programItself(
  manager: EntityManager,
  presented: PresentedToken | undefined,
  scope: string,
): Promise<Program> {
  // A request without a token gets no error code in its challenge (RFC 6750 §3.1).
  if (presented === undefined || presented.scheme === 'cookie') {
    throw new DomainError(
      'unauthenticated',
      'This needs an API token in the Authorization header.',
    );
  }
  const { scheme, token, address } = presented;
  const found =
    scheme === 'Bearer'
      ? await authenticateApiToken(manager, hashOpaqueToken(token), address)
      : undefined;
  if (found?.isAllowedHere !== true) {
    if (found?.isNoted) {
      const { apiTokenId, orgId, name } = found;
      const text = 'an API token was presented from an address that it does not allow';
      security.warn({ apiTokenId, orgId, name, address }, text);
    }
    throw refusedToken(
      'Bearer',
      'The API token is invalid, has ended, or is not allowed from this address.',
    );
  }
  const { apiTokenId, orgId, scopes } = found;
  if (!scopes.includes(scope)) {
    const challenge = { ...challengeOf('Bearer'), scope };
    throw new DomainError('insufficient_scope', `This needs the scope ${scope}.`, { challenge });
  }
  return { apiTokenId, orgId };
}
