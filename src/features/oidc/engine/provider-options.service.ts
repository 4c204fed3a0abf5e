import { Inject, Injectable } from '@nestjs/common';
import { signalsResource } from '#domain/oauth/shared-signals/receivers.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { deriveKey } from '#platform/crypto/sealed-secret.js';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { accessTokenClaims, mayNameEmail } from '../protocol/claims.js';
import {
  EXTRA_METADATA,
  checkFapiProfile,
  isFapi,
  type OwnMetadata,
} from '../protocol/client-metadata.js';
import {
  checkClientAssertion,
  checkMetadata,
  checkRequestObject,
  requiresPkce,
} from '../protocol/clients/client-rules.js';
import {
  errors,
  type Client,
  type Configuration,
  type KoaContextWithOIDC,
} from '../protocol/library.js';
import {
  checkRequestedScopes,
  completeOwnScopes,
  isForClientItself,
  ownResourceOf,
} from '../protocol/requested-scopes.js';
import {
  asksForSignals,
  assertRegisteredGrant,
  signalServer,
} from '../protocol/clients/signal-scopes.js';
import {
  assertResourcesWithinLimits,
  ownAudiences,
  resourceServerInfo,
} from '../protocol/resource-servers.js';
import { requestContextOf, requestOf } from '../request/request-context.js';
import { ResourceOwners } from '../request/resource-owners.service.js';
import { Adapters } from '../storage/adapters.service.js';
import { ClientAdapter } from '../storage/client-adapter.service.js';
import { AccessTokens, type JwtClaims } from './access-tokens.service.js';
import { FIXED, FIXED_FEATURES, assertionEndpoints } from './fixed-options.js';
import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { asksForLogin, currentContext, promptPolicy } from './library-patches.js';
import { LIFETIMES, accessTokenLifetime, idTokenLifetime } from './lifetimes.js';
import { mutualTls, mutualTlsMethods } from './mutual-tls.js';
import {
  createGrant,
  findAccount,
  isDenied,
  needsNativeConsent,
  needsTouch,
  touchBefore,
  updateSession,
} from './session-sync.js';

type Features = NonNullable<Configuration['features']>;

/**
 * Derives the secret of the nonces for DPoP proofs from a root secret, so that all replicas accept
 * the same nonces.
 */
export function nonceSecretOf(rootSecret: string): Buffer {
  return deriveKey(rootSecret, 'DPoP nonces', 32);
}

/** Builds the options of the OAuth library, one method for each topic. */
@Injectable()
export class ProviderOptions {
  readonly #sessionSeconds: number;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly clock: Clock,
    private readonly adapters: Adapters,
    private readonly clientAdapter: ClientAdapter,
    private readonly accessTokens: AccessTokens,
    private readonly resourceOwners: ResourceOwners,
  ) {
    this.#sessionSeconds = config.session.hours * 3600;
  }

  /**
   * Builds all options of the OAuth library except the signing keys and the rendering of errors.
   */
  build(): Configuration {
    return {
      ...FIXED,
      ...this.#storage(),
      ...this.#browserSessions(),
      ...this.#clients(),
      ...this.#tokenContents(),
      ttl: this.#lifetimes(),
      features: {
        ...FIXED_FEATURES,
        ...this.#tokenFeatures(),
        ...this.#requestFeatures(),
        mTLS: mutualTls(this.config.http, this.clock),
        resourceIndicators: this.#resourceIndicators(),
      },
    };
  }

  #storage(): Configuration {
    const clients = this.clientAdapter.of(currentContext);
    return {
      adapter: (model: string) => {
        const adapter = this.adapters.of(model, currentContext);
        return model === 'Client' ? { ...adapter, ...clients } : adapter;
      },
    };
  }

  #browserSessions(): Configuration {
    const policy = this.#prompts();
    const { root, previousRoot } = this.config.secrets;
    const secrets = [root, previousRoot].filter((secret) => secret !== undefined);
    const keys = secrets.map((secret) => deriveKey(secret, 'OAuth cookies', 32));
    const cookie = { httpOnly: true, sameSite: 'lax', signed: true } as const;
    return {
      cookies: {
        keys: keys.map((key) => key.toString('base64url')),
        names: { session: 'svc_op', interaction: 'svc_ix', resume: 'svc_rs' },
        long: cookie,
        short: cookie,
      },
      interactions: {
        policy,
        url: (_ctx, { uid }) => `/interaction/${uid}`,
      },
      findAccount: (ctx, subject, source) => findAccount(ctx, subject, source, this.resourceOwners),
      loadExistingGrant: (ctx) =>
        createGrant(ctx, this.resourceOwners, () => asksForLogin(policy, ctx)),
      extraParams: { svc_session: (ctx) => this.#beforePrompts(ctx) },
    };
  }

  #prompts() {
    const { resourceOwners } = this;
    return promptPolicy(
      (ctx) => needsNativeConsent(ctx, resourceOwners),
      {
        check: (ctx) => needsTouch(ctx, resourceOwners),
        details: (ctx) => touchBefore(ctx, resourceOwners),
      },
      {
        isNotAssigned: (ctx) => isDenied(ctx, 'not_assigned', resourceOwners),
        needsOtherTouch: (ctx) => isDenied(ctx, 'condition_unmet', resourceOwners),
      },
    );
  }

  /**
   * Checks the scopes of an authorization request and updates the OAuth library's session of the
   * browser, before the user is asked anything. The library calls this hook in every authorization
   * request.
   */
  #beforePrompts(ctx: KoaContextWithOIDC): Promise<void> {
    checkRequestedScopes(ctx);
    return updateSession(ctx, this.resourceOwners);
  }

  #clients(): Configuration {
    const { baseUrl: issuer } = this.config.http;
    return {
      clientAuthMethods: [
        ...(FIXED.clientAuthMethods ?? []),
        ...mutualTlsMethods(this.config.http),
      ],
      pkce: { required: requiresPkce },
      extraClientMetadata: {
        properties: [...EXTRA_METADATA],
        validator: (ctx, key, value, metadata) => {
          checkMetadata(ctx, key, value, metadata);
          if (key === 'svc_profile') checkFapiProfile(metadata);
        },
      },
      assertJwtClientAuthClaimsAndHeader: (ctx, claims, header, client) => {
        const endpoints = assertionEndpoints(ctx.oidc.route).flatMap((name) => [
          `${issuer}${ENDPOINT_PATHS[name]}`,
          ctx.oidc.urlFor(name), // the URL at the listener that was called
        ]);
        const assertion = { claims, header, issuer, endpoints };
        checkClientAssertion(assertion, client as OwnMetadata, this.clock.milliseconds());
      },
      fetch: (url, options) => this.clientAdapter.fetch(new Request(url).url, options ?? {}),
    };
  }

  #tokenContents(): Configuration {
    return {
      extraTokenClaims: (ctx, token) => {
        const client: (Client & OwnMetadata) | undefined = ctx.oidc.client;
        if (token.kind === 'ClientCredentials') {
          const { svc_org: orgId } = client ?? {};
          return { hardware_verified: false, ...(orgId === undefined ? {} : { org_id: orgId }) };
        }
        const { resourceOwner } = requestContextOf(ctx);
        if (!resourceOwner) throw new errors.InvalidGrant('the session of this grant has ended');
        return accessTokenClaims(resourceOwner, mayNameEmail(client, token.scope));
      },
      formats: {
        ...FIXED.formats,
        customizers: {
          jwt: async (ctx, token, jwt) => {
            await this.accessTokens.record(ctx, token, jwt.payload as unknown as JwtClaims);
          },
        },
      },
    };
  }

  #lifetimes(): Configuration['ttl'] {
    return {
      ...FIXED.ttl,
      AccessToken: (ctx, token) => accessTokenLifetime(ctx, token, this.clock.now()),
      IdToken: (ctx, _token, client) => idTokenLifetime(ctx, client, this.clock.now()),
      DeviceCode: this.config.oidc.deviceCode.expiresSeconds,
      Grant: this.#sessionSeconds,
      // The OAuth library's session without an account is kept for a short time. It has only the
      // state of a page, such as the logout page.
      Session: (_ctx, { accountId }) => (accountId ? this.#sessionSeconds : LIFETIMES.interaction),
      Interaction: LIFETIMES.interaction,
    };
  }

  #tokenFeatures() {
    return {
      introspection: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => this.accessTokens.mayIntrospect(client, token),
      },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      dPoP: {
        enabled: true,
        nonceSecret: nonceSecretOf(this.config.secrets.root),
        requireNonce: () => false,
      },
    } satisfies Features;
  }

  #requestFeatures() {
    return {
      requestObjects: {
        enabled: true,
        assertJwtClaimsAndHeader: (ctx, claims, header, client) => {
          const isPushed = 'PushedAuthorizationRequest' in ctx.oidc.entities;
          const requestObject = { claims, header, isPushed };
          checkRequestObject(requestObject, client as OwnMetadata, this.clock.milliseconds());
        },
      },
      fapi: {
        enabled: true,
        profile: (_ctx, client) => (isFapi(client as OwnMetadata | undefined) ? '2.0' : undefined),
      },
      deviceFlow: { ...FIXED_FEATURES.deviceFlow, enabled: true, deviceInfo },
    } satisfies Features;
  }

  #resourceIndicators() {
    const ofResource = resourceServerInfo(ownAudiences(this.config));
    const signals = signalsResource(this.config.http.baseUrl);
    return {
      enabled: true,
      getResourceServerInfo: async (ctx, resource, client) => {
        assertResourcesWithinLimits(ctx);
        if (isForClientItself(ctx)) {
          if (resource === signals) return signalServer(ctx, client, resource);
          assertRegisteredGrant(client);
        }
        const server = ofResource(ctx, resource, client);
        // `assertFree` refuses the resource of a registered Kubernetes cluster. At the token
        // endpoint, the SQL statement that issues the token refuses such a resource.
        if (ctx.oidc.route !== 'token') await this.resourceOwners.assertFree(resource);
        return server;
      },
      defaultResource: (ctx, client, several) => {
        if (several !== undefined) return undefined;
        // An unknown scope must be refused now. Here the request still has every requested scope,
        // but later the OAuth library drops the unknown ones.
        checkRequestedScopes(ctx);
        if (!isForClientItself(ctx)) return undefined;
        if (asksForSignals(ctx)) return signals;
        completeOwnScopes(ctx, client);
        return ownResourceOf(client);
      },
      useGrantedResource: () => false,
    } satisfies Features['resourceIndicators'];
  }
}

/**
 * Returns the IP address and the `User-Agent` of a device that requests a code. The approval page
 * shows only the IP address.
 */
function deviceInfo(ctx: KoaContextWithOIDC): Record<string, unknown> {
  return {
    ip: clientAddressOf(requestOf(ctx)) ?? null,
    userAgent: ctx.get('user-agent').slice(0, 512),
  };
}
