import { Inject, Injectable } from '@nestjs/common';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { checkDpopProof, DPOP_ALGORITHMS, DPOP_WINDOW, type DpopProof } from './dpop-proof.js';

/** DPoP at our own APIs (RFC 9449 §7): a bound token opens nothing without a proof, and a proof is good once. */
@Injectable()
export class DpopProofs {
  readonly #origins: readonly string[];

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly statements: BatchedQueries,
  ) {
    const { baseUrl, tls, mtls } = config.http;
    this.#origins = tls ? [baseUrl, portOf(baseUrl, mtls.port)] : [baseUrl];
  }

  /**
   * Spends the proof of a request.
   *
   * @param jkt the thumbprint of the key that its token is bound to
   * @throws DomainError invalid_dpop_proof
   */
  async spend(presented: PresentedToken, jkt: string): Promise<void> {
    const { iat, jti } = await this.#check(presented, jkt);
    // A proof from the future can come again until its own time is over, and a replica's clock may be behind ours.
    const forgotten = new Date((iat + 2 * DPOP_WINDOW) * 1000);
    // By the key, so that nobody else's proofs use its ids up.
    if (!(await this.statements.spend(`dpop ${jkt}`, jti, forgotten))) {
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
    const now = Math.floor(Date.now() / 1000);
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
