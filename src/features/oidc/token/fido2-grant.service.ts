import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/keys/authenticators/ceremony/challenge.js';
import { nativeOrigin } from '#domain/keys/authenticators/ceremony/native-assertion.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { KeyAuthentication } from '#domain/sign-in/key-authentication/key-authentication.service.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { mustAskForResources } from '../protocol/consent-rules.js';
import {
  buildTokenResponse,
  resolveRequestedResources,
  validateClientScope,
} from '../engine/library-patches.js';
import { idTokenClaims } from '../protocol/claims.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import {
  errors,
  type AccountClaims,
  type Client,
  type ResourceServerInstance,
  type TokenEndpointGrantContext,
} from '../protocol/library.js';
import { boundScopes, grantedScopes, scopeWords } from '../protocol/scopes.js';
import { requestOf } from '../request/request-context.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { asInvalidGrant, invalidGrant, readAssertion, rejected } from './fido2-assertion.js';
import { lacksConsent } from './subject-token.js';
import { issueToken, verifyPossession, type IssuedToken, type Possession } from './issue-token.js';

const PURPOSE = 'fido2-grant';

/**
 * The content of the encrypted state that a client gets with a challenge and sends back with the
 * assertion.
 */
interface ChallengeState {
  readonly challenge: string;
  /**
   * The thumbprint of the DPoP key that the token request must prove; undefined if the client named
   * none.
   */
  readonly jkt?: string;
}

/** The assertion of a security key that a token request presents. */
interface PresentedAssertion {
  /** An AuthenticationResponseJSON in base64url. */
  readonly assertion: string;
  readonly state: string;
  /** The thumbprint of the DPoP key that the request proves. */
  readonly jkt: string | undefined;
}

/**
 * Issues a token for an assertion of a security key, without a browser. The login has a session of
 * its own, which a logout in a browser does not end. The removal of the key or of the user ends it.
 */
@Injectable()
export class Fido2Grant {
  constructor(
    private readonly manager: EntityManager,
    private readonly singleUseStates: SingleUseStates,
    private readonly keyAuthentication: KeyAuthentication,
    private readonly sessions: Sessions,
    private readonly resourceOwners: ResourceOwners,
    private readonly serviceMetrics: ServiceMetrics,
  ) {}

  /**
   * Makes a challenge for a client, for one use. No row is written, because the client carries the
   * encrypted state. The challenge reveals no user, because only the assertion will name the key.
   */
  async createChallenge(
    clientId: string,
    jkt: string | undefined,
  ): Promise<{ readonly state: string; readonly challenge: Buffer }> {
    const challenge = newChallenge();
    const sealed: ChallengeState = {
      challenge: challenge.toString('base64url'),
      ...(jkt === undefined ? {} : { jkt }),
    };
    const options = { binding: bindingOf(clientId), ttlSeconds: CEREMONY_SECONDS };
    return { state: await this.singleUseStates.seal(PURPOSE, sealed, options), challenge };
  }

  /**
   * Responds to a token request of the FIDO2 grant.
   * @throws InvalidRequest, InvalidGrant, InvalidScope, InvalidTarget, and the errors of DPoP
   */
  async redeem(ctx: TokenEndpointGrantContext): Promise<void> {
    const { provider } = ctx.oidc;
    const { assertion, state } = ctx.oidc.params;
    if (typeof assertion !== 'string' || typeof state !== 'string') {
      throw new errors.InvalidRequest('missing required parameter(s) (assertion, state)');
    }
    const possession = await verifyPossession(ctx);
    validateClientScope(provider, ctx);
    const [server] = await resolveRequestedResources(provider, ctx);
    try {
      const presented = { assertion, state, jkt: possession.jkt };
      const resourceOwner = await this.#logIn(ctx, presented, server);
      const issued = await this.#issueOrEnd(ctx, resourceOwner, possession, server);
      ctx.body = buildTokenResponse(provider, issued);
    } catch (error) {
      if (error instanceof errors.InvalidGrant) {
        this.serviceMetrics.countAuthEvent('fido2_login_failure');
      }
      throw error;
    }
    this.serviceMetrics.countAuthEvent('fido2_login_success');
  }

  /**
   * Issues the tokens of a login. If they are refused, or if the key service does not sign them,
   * the session of the login is ended, because no client has received a token of it.
   */
  async #issueOrEnd(
    ctx: TokenEndpointGrantContext,
    resourceOwner: ResourceOwner,
    possession: Possession,
    server: ResourceServerInstance | undefined,
  ): ReturnType<typeof issueTokens> {
    try {
      const scope = ctx.oidc.params['scope'] ?? '';
      const profile = await this.resourceOwners.profileOf(resourceOwner, scope);
      const claims = idTokenClaims(resourceOwner, profile);
      return await issueTokens(ctx, { resourceOwner, claims }, possession, server);
    } catch (error) {
      const isUnsigned = error instanceof DomainError && error.code === 'kms_unavailable';
      const isRefused = error instanceof errors.OIDCProviderError;
      if (isUnsigned || isRefused) await this.sessions.end(this.manager, resourceOwner.sessionId);
      throw error;
    }
  }

  /**
   * Logs a user in by an assertion, and stores the user in the request context.
   *
   * @throws InvalidGrant for a wrong state or assertion, or if this client may get no token for
   *   this user
   */
  async #logIn(
    ctx: TokenEndpointGrantContext,
    presented: PresentedAssertion,
    server: ResourceServerInstance | undefined,
  ): Promise<ResourceOwner> {
    const { client } = ctx.oidc;
    const session = await asInvalidGrant(this.#openSession(ctx, client, presented));
    const resourceOwner = await this.resourceOwners.ofSession(ctx, session.id);
    const scopes = scopeWords(ctx.oidc.params['scope']);
    const mayHave =
      resourceOwner &&
      !(server && mustAskForResources(client, resourceOwner)) &&
      !(await lacksConsent(ctx, resourceOwner, scopes, this.resourceOwners));
    if (mayHave) return resourceOwner;
    await this.sessions.end(this.manager, session.id);
    throw invalidGrant(
      resourceOwner
        ? 'this application is of another organization, no admin has approved it, or it asks for a resource: the token endpoint cannot ask for consent'
        : 'nothing may be issued to this account',
    );
  }

  async #openSession(
    ctx: TokenEndpointGrantContext,
    client: Client & OwnMetadata,
    { assertion, state, jkt }: PresentedAssertion,
  ): Promise<OpenedSession> {
    const { clientId } = client;
    const binding = bindingOf(clientId);
    const redeemed = await this.singleUseStates.redeem<ChallengeState>(PURPOSE, state, { binding });
    if (redeemed.jkt !== undefined && redeemed.jkt !== jkt) {
      throw rejected('The challenge was made for another key than this request proves.');
    }
    const login = {
      credential: readAssertion(assertion),
      challenge: Buffer.from(redeemed.challenge, 'base64url'),
      session: undefined,
      clientId,
      ...(client.applicationType === 'native' && { nativeOrigin: nativeOrigin(clientId) }),
    };
    const session = await this.keyAuthentication.logIn(login, originOf(requestOf(ctx)));
    if (!session) throw new Error('a login outside a session opens one');
    return session;
  }
}

function bindingOf(clientId: string): string {
  return `client ${clientId}`;
}

async function issueTokens(
  ctx: TokenEndpointGrantContext,
  { resourceOwner, claims }: { resourceOwner: ResourceOwner; claims: AccountClaims },
  possession: Possession,
  server: ResourceServerInstance | undefined,
): Promise<IssuedToken & { readonly idToken: string | undefined }> {
  const { client, params } = ctx.oidc;
  const requested = scopeWords(params['scope']);
  const isDpopBound = possession.jkt !== undefined;
  const granted = boundScopes(grantedScopes(requested, client, resourceOwner), isDpopBound);
  const scopes = server ? requested.filter((scope) => server.scopes.has(scope)) : granted;
  const order = { grantType: 'fido2', resourceOwner, possession, scopes, server };
  const issued = await issueToken(ctx, order);
  const hasIdToken = granted.includes('openid');
  const idToken = hasIdToken ? await issueIdToken(ctx, claims, granted) : undefined;
  return { ...issued, idToken };
}

/** Signs an ID token with the claims that some scopes select (OpenID Connect Core §5.4). */
function issueIdToken(
  ctx: TokenEndpointGrantContext,
  claims: AccountClaims,
  scopes: readonly string[],
): Promise<string> {
  const token = new ctx.oidc.provider.IdToken({ ...claims }, { ctx });
  token.set('nonce', ctx.oidc.params['nonce']);
  return Object.assign(token, { scope: scopes.join(' ') }).issue({ use: 'idtoken' });
}
