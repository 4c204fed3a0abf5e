import type { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import type { Spend } from '#domain/oauth/grants/spent-ids.repository.js';
import type { Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { PresentedToken } from '#platform/http/access/access-policy.js';
import { checkDpopProof, DPOP_ALGORITHMS, DPOP_WINDOW, type DpopProof } from './dpop-proof.js';

/** The parts of the service that are needed to verify and spend a DPoP proof. */
export interface ProofParts {
  readonly config: Pick<Config, 'http'>;
  readonly clock: Clock;
  readonly batchedQueries: BatchedQueries;
}

/**
 * Verifies the DPoP proof of a request to the APIs of the service (RFC 9449 §7) and spends it, so
 * that it is accepted once.
 *
 * @param jkt the thumbprint of the key that the token is bound to
 * @throws DomainError invalid_dpop_proof
 */
export async function spendDpopProof(
  parts: ProofParts,
  presented: PresentedToken,
  jkt: string,
): Promise<void> {
  const { issuer, jti, expiresAt } = await verifiedProof(parts, presented, jkt);
  if (!(await parts.batchedQueries.spend(issuer, jti, expiresAt))) {
    throw refusal('The DPoP proof was used before.');
  }
}

/**
 * Verifies the DPoP proof of a request to the APIs of the service (RFC 9449 §7). The caller must
 * spend the returned id, so that the proof is accepted once.
 *
 * @param jkt the thumbprint of the key that the token is bound to
 * @throws DomainError invalid_dpop_proof
 */
export async function verifiedProof(
  { config, clock }: Pick<ProofParts, 'config' | 'clock'>,
  presented: PresentedToken,
  jkt: string,
): Promise<Spend> {
  const { iat, jti } = await checked(presented, jkt, originsOf(config), clock.seconds());
  // The id of the proof is kept until twice {@link DPOP_WINDOW} after the time in the proof. A
  // replica with a slow clock accepts the proof longer than this replica does.
  const expiresAt = new Date((iat + 2 * DPOP_WINDOW) * 1000);
  // The ids are stored for each key separately. Otherwise the proof of another key could use up the
  // id of this proof.
  return { issuer: `dpop ${jkt}`, jti, expiresAt };
}

async function checked(
  { proofs, method, path, token }: PresentedToken,
  jkt: string,
  origins: readonly string[],
  now: number,
): Promise<DpopProof> {
  const [proof, ...others] = proofs;
  if (proof === undefined || others.length > 0) {
    throw refusal('The request must carry one DPoP proof.');
  }
  const addresses = origins.map((origin) => origin + path);
  const found = await checkDpopProof(proof, { method, addresses, token, jkt, now });
  if (typeof found === 'string') throw refusal(found);
  return found;
}

/**
 * Returns the origins that a DPoP proof may name. If the service has TLS of its own, the port for
 * client certificates has a second origin.
 */
function originsOf({ http: { baseUrl, tls, mtls } }: Pick<Config, 'http'>): string[] {
  return tls ? [baseUrl, portOf(baseUrl, mtls.port)] : [baseUrl];
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
