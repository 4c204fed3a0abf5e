import { Inject, Injectable } from '@nestjs/common';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { checkDpopProof, DPOP_ALGORITHMS, DPOP_WINDOW, type DpopProof } from './dpop-proof.js';

/** Verifies DPoP proofs at the APIs of the service (RFC 9449 §7). A proof is accepted once. */
@Injectable()
export class DpopProofs {
  readonly #origins: readonly string[];

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly clock: Clock,
    private readonly batchedQueries: BatchedQueries,
  ) {
    const { baseUrl, tls, mtls } = config.http;
    this.#origins = tls ? [baseUrl, portOf(baseUrl, mtls.port)] : [baseUrl];
  }

  /**
   * Verifies the proof of a request and spends it.
   *
   * @param jkt the thumbprint of the key that the token is bound to
   * @throws DomainError invalid_dpop_proof
   */
  async spend(presented: PresentedToken, jkt: string): Promise<void> {
    const { iat, jti } = await this.#check(presented, jkt);
    // The id is kept for two windows: a proof may carry a time ahead, and the clock of another replica may be behind.
    const forgotten = new Date((iat + 2 * DPOP_WINDOW) * 1000);
    // Ids are kept per key, so that proofs of another key cannot use up an id.
    if (!(await this.batchedQueries.spend(`dpop ${jkt}`, jti, forgotten))) {
      throw refusal('The DPoP proof was used before.');
    }
  }

  async #check(presented: PresentedToken, jkt: string): Promise<DpopProof> {
    const { proofs, method, path, token } = presented;
    const [proof, ...others] = proofs;
    if (proof === undefined || others.length > 0) {
      throw refusal('The request must carry one DPoP proof.');
    }
    const addresses = this.#origins.map((origin) => origin + path);
    const now = this.clock.seconds();
    const checked = await checkDpopProof(proof, { method, addresses, token, jkt, now });
    if (typeof checked === 'string') throw refusal(checked);
    return checked;
  }
}

function portOf(baseUrl: string, port: number): string {
  const url = new URL(baseUrl);
  url.port = String(port);
  return url.origin;
}

function refusal(detail: string): DomainError {
  const challenge = { scheme: 'DPoP', algs: DPOP_ALGORITHMS } as const;
  return new DomainError('invalid_dpop_proof', detail, { challenge });
}
