import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Provider } from 'oidc-provider';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { TokenSigningKeys } from '#domain/oauth/token-signing/token-signing-keys.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { KoaContextWithOIDC } from '../protocol/library.js';
import { ownAudiences, type OwnAudiences } from '../protocol/resource-servers.js';
import { libraryKeys } from '../signing/library-keys.js';
import { ErrorResponses } from './error-responses.service.js';
import { assertionEndpoints } from './fixed-options.js';
import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { acceptNoncesOf, patchProvider } from './library-patches.js';
import { correctResponse, routeOf } from './provider-middleware.js';
import { nonceSecretOf, ProviderOptions } from './provider-options.service.js';

/** A function that runs before or after the OAuth library handles a request. */
type Step = (ctx: KoaContextWithOIDC) => Promise<void> | void;

/** Runs `oidc-provider`, the core of OAuth 2.0 and OpenID Connect. */
@Injectable()
export class OidcProvider {
  readonly provider: Provider;
  /**
   * True in certification test mode, which is for the conformance suite of OpenID: limits are off,
   * and no user is asked for consent.
   */
  readonly isCertification: boolean;
  /** True if this server terminates TLS, so that clients can use certificates. */
  readonly hasMutualTls: boolean;
  /** The audiences that belong to this service, so that no client may name them as a resource. */
  readonly ownAudiences: OwnAudiences;
  #callback: ReturnType<Provider['callback']> | undefined;
  readonly #scheme: string;
  readonly #authority: string;
  readonly #mutualTlsAuthority: string;
  readonly #mutualTlsPort: number | undefined;
  readonly #before: Step[] = [];
  readonly #after = new Map<string, Step>();

  constructor(
    @Inject(CONFIG) config: Config,
    providerOptions: ProviderOptions,
    batchedQueries: BatchedQueries,
    tokenSigningKeys: TokenSigningKeys,
    errorResponses: ErrorResponses,
  ) {
    const { baseUrl, tls, mtls } = config.http;
    this.isCertification = config.certification.token !== undefined;
    this.hasMutualTls = tls !== undefined;
    this.ownAudiences = ownAudiences(config);
    const { host, hostname, protocol } = new URL(baseUrl);
    this.#scheme = protocol.slice(0, -1);
    this.#authority = host;
    this.#mutualTlsAuthority = `${hostname}:${mtls.port}`;
    this.#mutualTlsPort = tls ? mtls.port : undefined;
    const { jwks, feature } = libraryKeys(tokenSigningKeys.keys);
    const options = providerOptions.build();
    this.provider = new Provider(baseUrl, {
      ...options,
      features: { ...options.features, externalSigningSupport: feature },
      jwks,
      renderError: (ctx, out, error) => errorResponses.render(ctx, out, error),
    });
    this.provider.proxy = true; // the library trusts the headers that `answer` sets
    patchProvider(
      this.provider,
      (route) => assertionEndpoints(route).map((name) => `${baseUrl}${ENDPOINT_PATHS[name]}`),
      (issuer, jti, expiresAt) => batchedQueries.spend(issuer, jti, expiresAt),
    );
    const { previousRoot } = config.secrets;
    if (previousRoot !== undefined) acceptNoncesOf(this.provider, nonceSecretOf(previousRoot));
    errorResponses.listen(this.provider);
    this.#use(async (ctx, next) => {
      for (const step of this.#before) await step(ctx);
      await next();
      await errorResponses.withholdRedirect(ctx);
      correctResponse(ctx, config.http);
      await this.#after.get(routeOf(ctx) ?? '')?.(ctx);
    });
  }

  /**
   * Passes a request of one of our routes to the OAuth library. The library trusts `Host` and
   * `X-Forwarded-*`, so they are overwritten from the configuration. Otherwise a client could
   * change the URLs that discovery publishes, and those that the library expects in audiences and
   * proofs.
   */
  async answer(request: Request, response: Response): Promise<void> {
    const { headers } = request;
    const authority = this.#isMutualTls(request) ? this.#mutualTlsAuthority : this.#authority;
    headers.host = authority;
    headers['x-forwarded-host'] = authority;
    headers['x-forwarded-proto'] = this.#scheme;
    this.#callback ??= this.provider.callback();
    await this.#callback(request, response);
  }

  /** Registers a function that runs before the OAuth library handles a request. */
  before(step: Step): void {
    this.#before.push(step);
  }

  /**
   * Registers a function that runs after the OAuth library has handled a request of an endpoint.
   * @param route the library's name of the endpoint
   */
  after(route: string, step: Step): void {
    if (this.#after.has(route)) throw new Error(`${route} has a step already`);
    this.#after.set(route, step);
  }

  #use(step: (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void>): void {
    this.provider.use(step as Parameters<Provider['use']>[0]);
  }

  #isMutualTls({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
    return this.#mutualTlsPort !== undefined && socket.localPort === this.#mutualTlsPort;
  }
}
