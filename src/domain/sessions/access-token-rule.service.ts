import { Injectable } from '@nestjs/common';
import { DomainError, type Challenge } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { ADMIN_SCOPE, CLI_CLIENT_ID, type AccessToken } from './access-token.js';
import { DPOP_ALGORITHMS } from './dpop-proof.js';
import { DpopProofs } from './dpop-proofs.service.js';

/**
 * Which OAuth access tokens open an API of ours: those of our own command-line client, with the scope of the route, in the
 * hands of whoever they are bound to. Anybody may register a client and be granted a token by a person who trusts it; none
 * of these opens anything here.
 */
@Injectable()
export class AccessTokenRule {
  constructor(private readonly proofs: DpopProofs) {}

  /**
   * Judges the token first, then the proof of its possession, which is spent.
   *
   * @param scope that the route asks for; undefined where no OAuth token is let in
   * @throws DomainError unauthenticated, insufficient_scope, invalid_dpop_proof, each with its one challenge
   */
  async check(
    presented: PresentedToken,
    token: AccessToken,
    scope: string | undefined,
  ): Promise<void> {
    const scheme = token.jkt === null ? 'Bearer' : 'DPoP';
    if (token.clientId !== CLI_CLIENT_ID || token.hasAudience || scope === undefined) {
      throw refusedToken(scheme, 'This access token opens nothing here.');
    }
    if (presented.scheme !== scheme) {
      throw refusedToken(scheme, `This access token must come under the ${scheme} scheme.`);
    }
    if (token.x5t !== null && token.x5t !== presented.certificate) {
      throw refusedToken(scheme, 'This access token is bound to another client certificate.');
    }
    if (!token.scope.has(scope)) {
      throw new DomainError('insufficient_scope', `This needs the scope ${scope}.`, {
        challenge: { ...challengeOf(scheme), scope },
      });
    }
    if (scope === ADMIN_SCOPE && token.jkt === null) {
      throw refusedToken('DPoP', 'An access token with this scope must be bound to a DPoP key.');
    }
    if (token.jkt !== null) await this.proofs.spend(presented, token.jkt);
  }
}

/** The answer to a token that is not accepted (RFC 6750 §3.1 `invalid_token`), and how one would have to come. */
export function refusedToken(scheme: Challenge['scheme'], detail: string): DomainError {
  return new DomainError('unauthenticated', detail, { challenge: challengeOf(scheme) });
}

/** How an access token has to come: under which scheme, and with which proofs (RFC 9449 §7.1). */
export function challengeOf(scheme: Challenge['scheme']): Challenge {
  return scheme === 'DPoP' ? { scheme, algs: DPOP_ALGORITHMS } : { scheme };
}
