import { systemClock, type Clock } from '#platform/clock/clock.js';
import { buildTokenResponse, resolveRequestedResources } from '../engine/library-patches.js';
import {
  errors,
  type ResourceServerInstance,
  type TokenEndpointGrantContext,
} from '../protocol/library.js';
import { requestContextOf } from '../request/request-context.js';
import { CLI_CLIENT_ID } from '../protocol/scopes.js';
import { exchangeForCluster } from './cluster-token.js';
import { ACCESS_TOKEN, exchangeRequest } from './exchange-request.js';
import { issueToken, verifyPossession } from './issue-token.js';
import { narrowedScopes, targetOf } from './narrowing.js';
import { findSubjectToken, invalidSubjectToken, type ExchangeServices } from './subject-token.js';

/**
 * Exchanges a user's access token for a token of the requesting client (RFC 8693), with at most the
 * same scopes and lifetime. The new grant belongs to that client, and ends with the grant of the
 * exchanged token. Of all public clients only `svc-cli` may exchange tokens, for Kubernetes
 * clusters.
 *
 * @throws InvalidRequest, InvalidTarget, InvalidScope, UnauthorizedClient, and the errors of DPoP
 *   and mTLS
 */
export async function exchangeToken(
  ctx: TokenEndpointGrantContext,
  services: ExchangeServices,
  clock: Clock = systemClock,
): Promise<void> {
  const { client, provider } = ctx.oidc;
  if (client.clientId === CLI_CLIENT_ID) return exchangeForCluster(ctx, services, clock);
  if (client.clientAuthMethod === 'none') {
    throw new errors.UnauthorizedClient('token exchange is for clients that authenticate');
  }
  const request = exchangeRequest(ctx.oidc.params);
  const possession = await verifyPossession(ctx);
  const subject = await findSubjectToken(ctx, request.subjectToken, possession, services);
  const server = await resourceServerOf(ctx, targetOf(request.targets, subject));
  const scopes = narrowedScopes(request.scopes, { subject, client, server });

  const { expiresAt: endsBy } = subject;
  if (endsBy <= clock.seconds()) throw invalidSubjectToken();
  const { resourceOwner, grantId, clientId } = subject;
  requestContextOf(ctx).subject = { grantId, clientId };
  const grantType = 'token_exchange';
  const order = { grantType, resourceOwner, possession, scopes, server, endsBy };
  const issued = await issueToken(ctx, order, clock);
  ctx.body = buildTokenResponse(provider, {
    ...issued,
    issuedTokenType: ACCESS_TOKEN,
  });
}

async function resourceServerOf(
  ctx: TokenEndpointGrantContext,
  resource: string | undefined,
): Promise<ResourceServerInstance | undefined> {
  if (resource === undefined) return undefined;
  ctx.oidc.params['resource'] = resource;
  const [server] = await resolveRequestedResources(ctx.oidc.provider, ctx);
  return server;
}
