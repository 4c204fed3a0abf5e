import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Provider, errors, type Configuration, type KoaContextWithOIDC } from 'oidc-provider';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { TokenSigningKeys } from '#domain/token-signing/token-signing-keys.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { deriveKey } from '#platform/crypto/sealed-secret.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { AccessTokenJwts } from './access-tokens.service.js';
import { Adapters } from '../storage/adapters.service.js';
import {
  checkAskedScopes,
  completeOwnScopes,
  isForClientItself,
  ownResourceOf,
} from '../protocol/requested-scopes.js';
import { accessTokenClaims } from '../protocol/claims.js';
import {
  EXTRA_METADATA,
  checkFapiProfile,
  secretHashesOf,
  type OwnMetadata,
} from '../protocol/client-metadata.js';
import {
  checkClientAssertion,
  checkMetadata,
  checkRequestObject,
  isFapi,
  requiresPkce,
} from '../protocol/clients/client-rules.js';
import { FIXED } from './configuration.js';
import { ErrorAnswers } from './error-responses.service.js';
import { exchangeOf } from '../request/request-context.js';
import { GrantLoader } from '../storage/grant-loader.service.js';
import { LIFETIMES, accessTokenLifetime, idTokenLifetime } from './lifetimes.js';
import { MutualTls } from './mutual-tls.js';
import { PageSources } from './page-sources.service.js';
import { promptPolicy } from './prompt-policy.js';
import { resourceServerInfo } from '../protocol/resource-servers.js';
import { SessionBridge } from './session-sync.service.js';
import { expectTokenEndpoint, tokenEndpointsOf } from './token-endpoints.js';
import { TokenPolicies } from './token-policies.service.js';

/** Letters and digits that nobody takes for one another, each as likely as any (RFC 8628 §6.1). */
const USER_CODE = { charset: 'base-20', mask: '****-****' } as const;

/** Seconds that an id is remembered beyond its proof's end: a proof may be dated ahead as far as it may lie back. */
const REPLAY_MARGIN = 600;

/** The OAuth 2.0 and OpenID Connect core: `oidc-provider`, with everything that matters decided by us. */
@Injectable()
export class OidcProvider {
  readonly provider: Provider;
  #answer: ReturnType<Provider['callback']> | undefined;
  readonly #authorities: { readonly main: string; readonly mutualTls: string };
  readonly #scheme: string;
  readonly #mutualTlsPort: number | undefined;

  constructor(
    @Inject(CONFIG) config: Config,
    adapters: Adapters,
    bridge: SessionBridge,
    grants: GrantLoader,
    jwts: AccessTokenJwts,
    statements: BatchedQueries,
    keys: TokenSigningKeys,
    outbound: OutboundHttp,
    mutualTls: MutualTls,
    pages: PageSources,
    answers: ErrorAnswers,
    policies: TokenPolicies,
  ) {
    const { baseUrl, tls, mtls } = config.http;
    const { host, hostname, protocol } = new URL(baseUrl);
    this.#authorities = { main: host, mutualTls: `${hostname}:${mtls.port}` };
    this.#scheme = protocol.slice(0, -1);
    this.#mutualTlsPort = tls ? mtls.port : undefined;
    const sessionSeconds = config.session.hours * 3600;
    const secrets = [config.secrets.root, config.secrets.previousRoot].filter(
      (s) => s !== undefined,
    );

    const configuration: Configuration = {
      ...FIXED,
      adapter: (model: string) => adapters.of(model),
      jwks: keys.privateJwks(),
      clientAuthMethods: [...(FIXED.clientAuthMethods ?? []), ...mutualTls.authMethods()],
      cookies: {
        keys: secrets.map((secret) => deriveKey(secret, 'OAuth cookies', 32).toString('base64url')),
        names: { session: 'svc_op', interaction: 'svc_ix', resume: 'svc_rs' },
        long: { httpOnly: true, sameSite: 'lax', signed: true },
        short: { httpOnly: true, sameSite: 'lax', signed: true },
      },
      interactions: {
        policy: promptPolicy((ctx) => grants.asksForNative(ctx)),
        url: (_ctx, { uid }) => `/interaction/${uid}`,
      },
      findAccount: (ctx, subject, source) => bridge.findAccount(ctx, subject, source),
      loadExistingGrant: (ctx) => grants.load(ctx),
      // Awaited in every authorization request, whether the parameter is there or not.
      extraParams: {
        svc_session: (ctx) => {
          checkAskedScopes(ctx);
          return bridge.follow(ctx);
        },
      },
      extraTokenClaims: (ctx, token) => {
        if (token.kind === 'ClientCredentials') return { hardware_verified: false };
        const { holder } = exchangeOf(ctx);
        if (!holder) throw new errors.InvalidGrant('no session stands behind this grant');
        return accessTokenClaims(holder);
      },
      formats: {
        ...FIXED.formats,
        customizers: {
          jwt: (ctx, token, jwt) =>
            jwts.register(ctx, token, jwt.payload as Parameters<AccessTokenJwts['register']>[2]),
        },
      },
      pkce: { required: requiresPkce },
      extraClientMetadata: {
        properties: [...EXTRA_METADATA],
        validator: (ctx, key, value, metadata) => {
          checkMetadata(ctx, key, value, metadata);
          if (key === 'svc_profile') checkFapiProfile(metadata);
        },
      },
      assertJwtClientAuthClaimsAndHeader: (ctx, claims, header, client) =>
        checkClientAssertion(
          { claims, header, issuer: baseUrl, tokenEndpoints: tokenEndpointsOf(ctx, baseUrl) },
          client as OwnMetadata,
        ),
      fetch: (url, options) => outbound.fetch(new Request(url).url, options ?? {}),
      renderError: (ctx, out, error) => answers.render(ctx, out, error),
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        claimsParameter: { enabled: true },
        introspection: {
          enabled: true,
          allowedPolicy: (_ctx, client, token) => policies.mayIntrospect(client, token),
        },
        jwtIntrospection: { enabled: true },
        revocation: {
          enabled: true,
          allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
        },
        registration: { enabled: true },
        registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
        requestObjects: {
          enabled: true,
          assertJwtClaimsAndHeader: (ctx, claims, header, client) => {
            const isPushed = 'PushedAuthorizationRequest' in ctx.oidc.entities;
            checkRequestObject({ claims, header, isPushed }, client as OwnMetadata);
          },
        },
        jwtUserinfo: { enabled: true },
        jwtResponseModes: { enabled: true },
        pushedAuthorizationRequests: { enabled: true },
        dPoP: {
          enabled: true,
          nonceSecret: deriveKey(config.secrets.root, 'DPoP nonces', 32),
          requireNonce: () => false,
        },
        fapi: {
          enabled: true,
          profile: (_ctx, client) =>
            isFapi(client as OwnMetadata | undefined) ? '2.0' : undefined,
        },
        mTLS: mutualTls.feature(),
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: resourceServerInfo(baseUrl),
          defaultResource: (ctx, client, several) => {
            if (several !== undefined) return undefined;
            // The last moment at which the library still knows every scope that was asked for.
            checkAskedScopes(ctx);
            if (!isForClientItself(ctx)) return undefined;
            completeOwnScopes(ctx, client);
            return ownResourceOf(client);
          },
          useGrantedResource: () => false,
        },
        deviceFlow: { enabled: true, ...USER_CODE, deviceInfo: pages.deviceInfo },
        rpInitiatedLogout: {
          enabled: true,
          logoutSource: pages.logout,
          postLogoutSuccessSource: pages.loggedOut,
        },
      },
      ttl: {
        ...FIXED.ttl,
        AccessToken: accessTokenLifetime,
        IdToken: idTokenLifetime,
        DeviceCode: config.oidc.deviceCode.expiresSeconds,
        Grant: sessionSeconds,
        // One that nobody is logged in with remembers what a page asked, and no more.
        Session: (_ctx, { accountId }) => (accountId ? sessionSeconds : LIFETIMES.interaction),
        Interaction: LIFETIMES.interaction,
      },
    };
    const provider = new Provider(baseUrl, configuration);
    provider.proxy = true; // its headers are ours: see answer
    provider.ReplayDetection.unique = (issuer, jti, exp) =>
      statements.spend(issuer, jti, new Date((exp + REPLAY_MARGIN) * 1000));
    compareByHash(provider);
    expectTokenEndpoint(provider, baseUrl);
    answers.listen(provider);
    this.provider = provider;
  }

  /**
   * Lets the library answer a request of a route of ours. It takes every address of `Host` and `X-Forwarded-*`: these
   * become what the configuration says, so that neither discovery nor audiences nor proofs follow what a client wrote.
   */
  async answer(request: Request, response: Response): Promise<void> {
    const { headers } = request;
    const authority = this.#isMutualTls(request)
      ? this.#authorities.mutualTls
      : this.#authorities.main;
    headers.host = authority;
    headers['x-forwarded-host'] = authority;
    headers['x-forwarded-proto'] = this.#scheme;
    // Made on first need: it holds the steps that were added until then.
    this.#answer ??= this.provider.callback();
    await this.#answer(request, response);
  }

  /** Runs a step before or after the library's own. */
  use(step: (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void>): void {
    this.provider.use(step as Parameters<Provider['use']>[0]);
  }

  #isMutualTls({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
    return this.#mutualTlsPort !== undefined && socket.localPort === this.#mutualTlsPort;
  }
}

/** In place of a client's secret the library holds the hashes of those that are good: it compares by them. */
function compareByHash({ Client }: Provider): void {
  Client.prototype.compareClientSecret = compareClientSecret;
}

function compareClientSecret(this: { readonly clientSecret?: string }, actual: string): boolean {
  const presented = hashOpaqueToken(actual);
  return secretHashesOf(this.clientSecret).some(
    (hash) => hash.length === presented.length && timingSafeEqual(hash, presented),
  );
}
