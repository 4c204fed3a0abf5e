import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import type { Clock } from '#platform/clock/clock.js';
import { isSingleLine } from '#platform/text/single-line.js';
import { buildTokenResponse } from '../engine/library-patches.js';
import { errors, type TokenEndpointGrantContext } from '../protocol/library.js';
import { clusterServer } from '../protocol/resource-servers.js';
import { CLI_CLIENT_ID, CREDENTIALS_SCOPE, OIDC_SCOPES } from '../protocol/scopes.js';
import { noSuchCluster } from '../request/refused-reach.js';
import { requestContextOf } from '../request/request-context.js';
import { ACCESS_TOKEN, exchangeRequest } from './exchange-request.js';
import { issueToken, verifyPossession } from './issue-token.js';
import { narrowedScopes } from './narrowing.js';
import {
  findSubjectToken,
  invalidSubjectToken,
  type ExchangeServices,
  type SubjectToken,
} from './subject-token.js';

/**
 * The binding of a token for a Kubernetes cluster: none, because `kubectl` sends the token as a
 * Bearer token, without a proof.
 */
const UNBOUND = { jkt: undefined, x5t: undefined };

/**
 * Exchanges a DPoP-bound token of our command-line client `svc-cli` for a JWT that a Kubernetes
 * cluster of the user's organization accepts. The new grant ends with the grant of the exchanged
 * token. The record of the JWT also ends with the registration of the cluster.
 *
 * @throws InvalidRequest, InvalidTarget, InvalidScope, InvalidDpopProof
 */
export async function exchangeForCluster(
  ctx: TokenEndpointGrantContext,
  services: ExchangeServices,
  clock: Clock,
): Promise<void> {
  const { client, provider, params } = ctx.oidc;
  const request = exchangeRequest(params);
  const resource = onlyResource(params);
  const possession = await verifyPossession(ctx);
  if (possession.jkt === undefined) {
    throw new errors.InvalidDpopProof('a DPoP proof of the key of the subject token is required');
  }
  const subject = await findSubjectToken(ctx, request.subjectToken, possession, services);
  assertOwnToken(subject, possession.jkt);
  const { resourceOwner, grantId, clientId } = subject;
  const server = new provider.ResourceServer(resource, clusterServer(resource));
  const scopes = narrowedScopes(request.scopes, {
    subject: { scopes: subject.scopes, audience: undefined, grantedAt: () => OIDC_SCOPES },
    client,
    server,
  });
  const { expiresAt: endsBy } = subject;
  if (endsBy <= clock.seconds()) throw invalidSubjectToken();
  await findCluster(ctx, resourceOwner, resource, services);
  requestContextOf(ctx).subject = { grantId, clientId };
  const order = { resourceOwner, possession: UNBOUND, scopes, server, endsBy };
  const issued = await issueToken(ctx, { grantType: 'token_exchange', ...order }, clock);
  ctx.body = buildTokenResponse(provider, { ...issued, issuedTokenType: ACCESS_TOKEN });
}

/**
 * Returns the resource that a request names, which stands for a Kubernetes cluster.
 * @throws InvalidTarget unless the request names exactly one resource, and no audience
 */
function onlyResource({ resource, audience }: Readonly<Record<string, unknown>>): string {
  if (typeof resource !== 'string' || !isResourceName(resource) || audience !== undefined) {
    throw new errors.InvalidTarget('name one cluster by one resource, and no audience');
  }
  return resource;
}

/**
 * The most characters of a resource. The length is limited because the audit log records a refused
 * resource.
 */
const LONGEST_RESOURCE = 1_024;

function isResourceName(resource: string): boolean {
  return resource !== '' && resource.length <= LONGEST_RESOURCE && isSingleLine(resource);
}

/**
 * Checks the token to exchange (the subject token). It must belong to `svc-cli`, have the scope for
 * the credentials of its user, and be bound to the key that the request proves. A security key must
 * have verified its session.
 *
 * @throws InvalidRequest for any other token
 */
function assertOwnToken(subject: SubjectToken, jkt: string): void {
  const { clientId, audience, ownScopes, resourceOwner } = subject;
  const isOwn = clientId === CLI_CLIENT_ID && audience === undefined && subject.jkt === jkt;
  if (!isOwn || !resourceOwner.hardwareVerified) throw invalidSubjectToken();
  if (!ownScopes.includes(CREDENTIALS_SCOPE)) {
    throw new errors.InvalidRequest(`the subject token lacks the scope ${CREDENTIALS_SCOPE}`);
  }
}

/**
 * Finds the Kubernetes cluster that the user's organization registered for a resource (RFC 8707),
 * and stores it in the request context. Any other resource gets the same error as a cluster that
 * does not admit the user, so that no user learns which clusters exist.
 *
 * @throws InvalidTarget for any other resource
 */
async function findCluster(
  ctx: TokenEndpointGrantContext,
  resourceOwner: ResourceOwner,
  resource: string,
  { resourceOwners }: ExchangeServices,
): Promise<void> {
  const id = await resourceOwners.clusterOf(resourceOwner, resource);
  requestContextOf(ctx).cluster = { resource, id };
  if (id !== undefined) return;
  await resourceOwners.recordRefusedReach(ctx, resourceOwner.userId, { denial: 'not_assigned' });
  throw noSuchCluster();
}
