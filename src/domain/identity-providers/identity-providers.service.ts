import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { SingleUseStates } from '#domain/single-use/single-use-states.service.js';
import type { Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { reportOf } from './sign-in-failure.js';
import { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import type { UpstreamIdentity } from './upstream-identity.js';
import { OidcUpstream } from './oidc-upstream.js';
import type { Arrival, Remembered, UpstreamProvider } from './upstream-provider.js';

/** The purpose of the state that a browser carries to a provider and back. */
const PURPOSE = 'upstream-sign-in';
/** The lifetime of the state in seconds: enough for a password, a second factor and a lost phone. */
const STATE_TTL = 600;

/** The payload of the state: the provider, the secrets of the sign-in, and the address after it. */
interface SignInState {
  readonly slug: string;
  readonly remembered: Remembered;
  readonly redirectTo: string;
  readonly crossSite?: boolean;
}

/** The start of a sign-in. */
export interface SignInStart {
  /** The address after the sign-in. The caller has checked that it belongs to this service. */
  readonly redirectTo: string;
  readonly loginHint?: string | undefined;
  /** The secret in the cookie of the browser: only this browser can complete the sign-in. */
  readonly browser: string;
  /** True when a page of another site sent the browser: the user may not have started the sign-in. */
  readonly crossSite?: boolean;
}

/** A sign-in that returned from its provider. Its state is spent. */
export interface ReturnedSignIn {
  /** The slug of the provider. */
  readonly provider: string;
  readonly redirectTo: string;
  readonly crossSite: boolean;
  /**
   * Reads from the provider who signed in. It works once.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable; the log has the cause
   */
  identify(): Promise<UpstreamIdentity>;
}

/** A configured provider. */
export type ListedProvider = Pick<UpstreamProvider, 'slug' | 'name' | 'issuer' | 'tenancy'>;

/** The configured identity providers, in the configured order. */
@Injectable()
export class IdentityProviders implements OnApplicationShutdown {
  readonly #log = new Logger('upstream');

  private constructor(
    private readonly providers: ReadonlyMap<string, UpstreamProvider>,
    private readonly states: SingleUseStates,
    private readonly http: UpstreamHttp,
  ) {}

  /**
   * Discovers every configured provider, all at once.
   *
   * @throws ConfigProblems with one line for each problem of each provider
   */
  static async connect(
    config: Pick<Config, 'http' | 'upstream'>,
    states: SingleUseStates,
    clock: Clock,
  ): Promise<IdentityProviders> {
    const { providers, extraCaCerts } = config.upstream;
    const redirectUri = `${config.http.baseUrl}/oauth/callback`;
    const http = new UpstreamHttp(extraCaCerts);
    const outcomes = await Promise.allSettled(
      providers.map((settings) => OidcUpstream.connect(settings, redirectUri, http, clock)),
    );
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    if (failures.length > 0) {
      await http.close();
      throw new ConfigProblems(failures.flatMap(({ reason }) => problemsOf(reason)));
    }
    const connected = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    const bySlug = new Map(connected.map(({ value }) => [value.slug, value]));
    return new IdentityProviders(bySlug, states, http);
  }

  /** Lists the providers in the configured order, for the log-in page and for the admins of organizations. */
  list(): ListedProvider[] {
    return [...this.providers.values()].map(({ slug, name, issuer, tenancy }) => ({
      slug,
      name,
      issuer,
      tenancy,
    }));
  }

  /** Lists the origins to which a form may lead, for `form-action` of the Content-Security-Policy. */
  authorizationEndpointOrigins(): string[] {
    return [...new Set([...this.providers.values()].map(({ origin }) => origin))];
  }

  /**
   * Starts a sign-in.
   *
   * @returns the address to which the browser goes
   * @throws DomainError unknown_provider
   */
  async begin(
    slug: string,
    { browser, redirectTo, loginHint, crossSite = false }: SignInStart,
  ): Promise<URL> {
    const provider = this.#find(slug);
    const remembered = provider.remember();
    const signIn: SignInState = { slug, remembered, redirectTo, crossSite };
    const state = await this.states.seal(PURPOSE, signIn, {
      binding: browser,
      ttlSeconds: STATE_TTL,
    });
    return provider.depart({ state, remembered, loginHint });
  }

  /**
   * Continues a sign-in from the query of the provider's redirect, and spends the state.
   *
   * @throws DomainError invalid_state, unknown_provider
   */
  async resume(callback: { url: URL; browser: string }): Promise<ReturnedSignIn> {
    const parameters = callback.url.searchParams;
    const state = parameters.get('state') ?? '';
    const underWay = await this.states.redeem<SignInState>(PURPOSE, state, {
      binding: callback.browser,
    });
    const { slug, remembered, redirectTo, crossSite = false } = underWay;
    const provider = this.#find(slug);
    return {
      provider: slug,
      redirectTo,
      crossSite,
      identify: () => this.#identify(provider, { parameters, state, remembered }),
    };
  }

  /** Closes the connections to the providers. */
  onApplicationShutdown(): Promise<void> {
    return this.http.close();
  }

  async #identify(provider: UpstreamProvider, arrival: Arrival): Promise<UpstreamIdentity> {
    try {
      return await provider.arrive(arrival);
    } catch (error) {
      this.#log.warn({ provider: provider.slug, ...reportOf(error) }, 'A sign-in failed upstream');
      throw error;
    }
  }

  #find(slug: string): UpstreamProvider {
    const provider = this.providers.get(slug);
    if (provider) return provider;
    throw new DomainError('unknown_provider', 'There is no identity provider of that name.');
  }
}

function problemsOf(reason: unknown): readonly string[] {
  if (reason instanceof ConfigProblems) return reason.problems;
  throw reason;
}
