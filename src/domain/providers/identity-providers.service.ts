import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import {
  SingleUseStates,
  invalidState,
} from '#domain/access/single-use/single-use-states.service.js';
import type { Clock } from '#platform/clock/clock.js';
import type { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { reportOf } from './openid/sign-in-failure.js';
import type { UpstreamIdentity } from './upstream-identity.js';
import { connectProviders, type ConnectedSaml, type ProvidersConfig } from './connect-providers.js';
import type { ReceivedResponse, SamlUpstream } from './saml-upstream.js';
import { assertVouched, vouchingWarnings } from './vouching.js';
import type { Arrival, Remembered, UpstreamProvider } from './upstream-provider.js';

/**
 * The purpose of the sealed state, an encrypted token that a browser takes to an identity provider
 * and back. A state with another purpose is refused.
 */
const PURPOSE = 'upstream-sign-in';
/**
 * The lifetime of the sealed state in seconds. The user needs this time for a password and a second
 * factor at the provider.
 */
const STATE_TTL = 600;
/**
 * The path and lifetime of the cookie that keeps the sealed state in the browser during a SAML
 * sign-in. The browser sends the cookie only at the end of the sign-in.
 */
export const KEPT_STATE_COOKIE = { path: '/saml/complete', maxAgeSeconds: STATE_TTL } as const;
/**
 * The cookie name for the states of all sign-ins that pages of other sites started. There is only
 * one name, so that a site cannot fill the browser with cookies.
 */
export const OTHER_SITES_SIGN_IN = 'of_other_site';
/** The most characters of a sealed state in a cookie, because browsers refuse larger cookies. */
const LONGEST_KEPT_STATE = 3800;
/** The error text for a SAML response to no request of this service. */
const UNASKED =
  'The identity provider did not sign you in. It answers no request of this service. Start the sign-in on the login page.';
/** Milliseconds between two reads of the metadata of all SAML providers. */
const REFRESH_INTERVAL = 86_400_000;
/** Milliseconds between two searches for SAML providers with metadata that must be read again. */
const LOOK_INTERVAL = 60_000;

/**
 * The payload of the sealed state: the provider, the secrets of the sign-in, and the URL to which
 * the browser goes after the sign-in.
 */
interface SignInState {
  readonly slug: string;
  readonly remembered: Remembered;
  readonly redirectTo: string;
  readonly crossSite?: boolean;
}

/** The request of a browser to sign in through a provider. */
export interface SignInStart {
  /**
   * The URL or path to which the browser goes after the sign-in. The caller has checked that it
   * belongs to this service.
   */
  readonly redirectTo: string;
  readonly loginHint?: string | undefined;
  /**
   * The secret in the cookie of the browser. Only a browser with this secret can complete the
   * sign-in.
   */
  readonly browser: string;
  /**
   * True if a page of another site sent the browser here, so that the user may not have started the
   * sign-in.
   */
  readonly crossSite?: boolean;
  /**
   * A function that stores the sealed state in a cookie of the given name. It is called if the
   * provider does not send the state back.
   */
  readonly keep?: (name: string, state: string) => void;
}

/** The request with which a browser returns from a provider. */
export interface Callback {
  /** The URL of the request, with the parameters that the provider added. */
  readonly url: URL;
  /** The secret in the cookie of the browser, which proves that this browser began the sign-in. */
  readonly browser: string;
  /**
   * The sealed state that the browser kept in a cookie; undefined if the provider sends the state
   * back.
   */
  readonly kept?: string;
}

/**
 * A sign-in whose browser has returned from the provider. The sealed state of the sign-in cannot be
 * used again.
 */
export interface ReturnedSignIn {
  /** The short name (slug) of the provider in URLs. */
  readonly provider: string;
  readonly redirectTo: string;
  readonly crossSite: boolean;
  /**
   * Returns the user who signed in at the provider. It can be called only once, because the
   * response of the provider is used up.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable; the log has the
   *   cause
   */
  identify(): Promise<UpstreamIdentity>;
}

/** The facts about a configured provider that lists show. */
export type ListedProvider = Pick<
  UpstreamProvider,
  'slug' | 'name' | 'issuer' | 'tenancy' | 'domains'
>;

/** Signs users in through the configured identity providers, which are in the configured order. */
@Injectable()
export class IdentityProviders implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #log = new Logger('upstream');
  #timers: readonly NodeJS.Timeout[] = [];

  private constructor(
    private readonly providers: ReadonlyMap<string, UpstreamProvider>,
    private readonly states: SingleUseStates,
    private readonly http: UpstreamHttp,
    private readonly saml: ConnectedSaml | undefined,
  ) {}

  /**
   * Fetches the published documents of every configured provider at the same time.
   *
   * @param dataSource needed if a SAML provider is configured
   * @throws ConfigProblems with one line for each problem of each provider
   */
  static async connect(
    config: ProvidersConfig,
    states: SingleUseStates,
    clock: Clock,
    dataSource?: DataSource,
  ): Promise<IdentityProviders> {
    const { providers, http, saml } = await connectProviders(config, clock, dataSource);
    return new IdentityProviders(providers, states, http, saml);
  }

  /**
   * Lists the providers in the configured order, for the login page and for the admins of
   * organizations.
   */
  list(): ListedProvider[] {
    return [...this.providers.values()].map(({ slug, name, issuer, tenancy, domains }) => ({
      slug,
      name,
      issuer,
      tenancy,
      domains,
    }));
  }

  /**
   * Lists the origins of the providers to which a form on a page may lead. The header
   * Content-Security-Policy names them in `form-action`, so that the browser allows the redirect.
   */
  authorizationEndpointOrigins(): string[] {
    return [...new Set([...this.providers.values()].map(({ origin }) => origin))];
  }

  /**
   * Starts a sign-in through a provider.
   *
   * @returns the URL to which the browser goes
   * @throws DomainError unknown_provider
   */
  async begin(
    slug: string,
    { browser, redirectTo, loginHint, crossSite = false, keep }: SignInStart,
  ): Promise<URL> {
    const provider = this.#find(slug);
    const remembered = provider.remember();
    const signIn: SignInState = { slug, remembered, redirectTo, crossSite };
    const binding = { binding: browser, ttlSeconds: STATE_TTL };
    let state = await this.states.seal(PURPOSE, signIn, binding);
    const name = provider.keptUnder?.(remembered);
    if (name !== undefined) {
      if (state.length > LONGEST_KEPT_STATE) {
        // The state is too long for a cookie, because it contains the URL to which the browser goes
        // after the sign-in. The path of the first page, `/`, replaces this URL.
        state = await this.states.seal(PURPOSE, { ...signIn, redirectTo: '/' }, binding);
      }
      if (!keep) throw new Error(`a sign-in at ${slug} needs a browser that keeps its state`);
      keep(crossSite ? OTHER_SITES_SIGN_IN : name, state);
    }
    return provider.depart({ state, remembered, loginHint });
  }

  /**
   * Accepts the response of a SAML provider. A browser posts the response without its cookies,
   * because the request comes from another site. So the identity is stored until the browser that
   * began the sign-in continues it.
   *
   * @throws DomainError sign_in_failed for a response that no provider signed, or that answers no
   *   request of this service
   */
  async receive(encodedResponse: string): Promise<ReceivedResponse> {
    let provider: SamlUpstream | undefined;
    try {
      const response = this.saml?.parseResponse(encodedResponse);
      provider = response && this.saml?.providers.find((one) => one.isAnsweredBy(response));
      if (!response || !provider) throw new DomainError('sign_in_failed', UNASKED);
      const received = await provider.receive(response);
      if (received.kind === 'refused') this.#logFailure(provider.slug, received.error);
      return received;
    } catch (error) {
      if (error instanceof DomainError) this.#logFailure(provider?.slug, error);
      throw error;
    }
  }

  /**
   * Returns the metadata of this service as a SAML service provider. The entity id in it depends on
   * the identity provider for which the metadata is.
   *
   * @param slug the identity provider. If undefined, the provider that knows this service by the
   *   entity id `address` is taken, or else the first one
   * @param address the URL at which this document is served
   * @throws DomainError not_found if there is no such provider
   */
  serviceMetadata(slug: string | undefined, address: string): string {
    const all = this.saml?.providers ?? [];
    const provider =
      slug === undefined
        ? (all.find(({ spEntityId }) => spEntityId === address) ?? all[0])
        : all.find((one) => one.slug === slug);
    if (provider) return provider.serviceMetadata();
    throw new DomainError('not_found', 'No SAML identity provider of that name is configured.');
  }

  /**
   * Continues a sign-in from the query parameters of the provider's redirect, and spends the sealed
   * state.
   *
   * @throws DomainError invalid_state, unknown_provider
   */
  async resume(callback: Callback): Promise<ReturnedSignIn> {
    const parameters = callback.url.searchParams;
    const state = callback.kept ?? parameters.get('state') ?? '';
    const underWay = await this.states.redeem<SignInState>(PURPOSE, state, {
      binding: callback.browser,
    });
    const { slug, remembered, redirectTo, crossSite = false } = underWay;
    const provider = this.#find(slug);
    // A state that was sealed for OpenID Connect is not valid for SAML, and the reverse.
    if ((provider.keptUnder !== undefined) !== (callback.kept !== undefined)) throw invalidState();
    return {
      provider: slug,
      redirectTo,
      crossSite,
      identify: () => this.#identify(provider, { parameters, state, remembered }),
    };
  }

  /**
   * Logs a warning about providers that may state e-mail addresses of every domain. Starts the
   * timers that read the documents of SAML providers again, because the providers replace keys
   * without notice.
   */
  onApplicationBootstrap(): void {
    for (const warning of vouchingWarnings([...this.providers.values()])) {
      new Logger('security').warn(warning);
    }
    if (!this.saml) return;
    this.#timers = [
      setInterval(() => void this.refresh(), REFRESH_INTERVAL).unref(),
      setInterval(() => void this.refreshDue(), LOOK_INTERVAL).unref(),
    ];
  }

  /**
   * Reads the metadata of SAML providers again, and makes the next SAML key of this service if it
   * is due. If a read fails, the present metadata and keys stay in use.
   */
  async refresh(): Promise<void> {
    const renewals = [
      Promise.resolve(this.saml?.spKeys.renew()),
      ...[...this.providers.values()].map((provider) => Promise.resolve(provider.refresh?.())),
    ];
    await this.#settle(renewals);
  }

  /**
   * Reads the metadata of each SAML provider whose `cacheDuration` is over. If a read fails, the
   * present metadata stays in use.
   */
  async refreshDue(): Promise<void> {
    const providers = [...this.providers.values()];
    await this.#settle(providers.map((provider) => Promise.resolve(provider.refreshIfDue?.())));
  }

  async #settle(renewals: readonly Promise<void>[]): Promise<void> {
    for (const outcome of await Promise.allSettled(renewals)) {
      if (outcome.status === 'fulfilled') continue;
      this.#log.warn(`The refresh of SAML failed: ${reasonOf(outcome.reason)}`);
    }
  }

  /** Stops the timers, and closes the connections to the providers. */
  onApplicationShutdown(): Promise<void> {
    this.#timers.forEach(clearInterval);
    return this.http.close();
  }

  /**
   * Returns the user who signed in at the provider, and checks that the present configuration lets
   * the provider state e-mail addresses of the user's domain.
   */
  async #identify(provider: UpstreamProvider, arrival: Arrival): Promise<UpstreamIdentity> {
    try {
      const identity = await provider.arrive(arrival);
      assertVouched([provider], identity);
      return identity;
    } catch (error) {
      this.#logFailure(provider.slug, error);
      throw error;
    }
  }

  #logFailure(provider: string | undefined, error: unknown): void {
    this.#log.warn({ provider, ...reportOf(error) }, 'A sign-in failed upstream');
  }

  #find(slug: string): UpstreamProvider {
    const provider = this.providers.get(slug);
    if (provider) return provider;
    throw new DomainError('unknown_provider', 'There is no identity provider of that name.');
  }
}
