import {
  findReceiverToken,
  MANAGE_SCOPE,
  READ_SCOPE,
  signalsResource,
} from '#domain/oauth/shared-signals/receivers.repository.js';
import type { StreamCaller } from '#domain/oauth/shared-signals/streams.repository.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { accessToken, assertPresented, challengeOf, refusedToken } from './access-token.js';
import { spendDpopProof, type ProofParts } from './dpop/spend-dpop-proof.js';

/**
 * An application that authenticated with a token of its own, which is not for any user. It uses the
 * endpoints of Shared Signals, by which it manages its stream of security events.
 */
export type ClientItself = StreamCaller;

/**
 * Finds the application by its own token (of the client credentials grant) in a request. The token
 * must be for the resource of Shared Signals and have the scope of the route. If the route only
 * reads, the scope {@link MANAGE_SCOPE} is enough too. If the token is bound to a DPoP key or to a
 * client certificate, the request must be made with this key or certificate. No other token opens
 * the route.
 *
 * @throws DomainError unauthenticated, insufficient_scope or invalid_dpop_proof
 */
export async function clientItself(
  parts: ProofParts,
  manager: EntityManager,
  presented: PresentedToken | undefined,
  scope: string,
): Promise<ClientItself> {
  if (presented === undefined) throw new DomainError('unauthenticated', 'Present an access token.');
  const tokenHash = hashOpaqueToken(presented.token);
  const found =
    presented.scheme === 'cookie' ? undefined : await findReceiverToken(manager, tokenHash);
  const audience = signalsResource(parts.config.http.baseUrl);
  if (found?.payload['aud'] !== audience) {
    throw refusedToken('Bearer', 'The access token is not valid for signals, or has expired.');
  }
  const { clientId, orgId, payload } = found;
  const token = accessToken(clientId, payload);
  assertPresented(presented, token);
  const isReading = scope === READ_SCOPE && token.scope.has(MANAGE_SCOPE);
  const challenge = challengeOf(token.jkt === null ? 'Bearer' : 'DPoP');
  if (!token.scope.has(scope) && !isReading) {
    throw new DomainError('insufficient_scope', `This needs the scope ${scope}.`, {
      challenge: { ...challenge, scope },
    });
  }
  if (token.jkt !== null) await spendDpopProof(parts, presented, token.jkt);
  return { clientId, orgId, tokenHash, challenge };
}
