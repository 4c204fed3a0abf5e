import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { SingleUseStates } from '#domain/single-use/single-use-states.service.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { reportOf } from './sign-in-failure.js';
import { UpstreamHttp } from './upstream-http.js';
import type { UpstreamIdentity } from './upstream-identity.js';
import { UPSTREAM_KINDS } from './upstream-kinds.js';
import type { Arrival, Remembered, UpstreamProvider } from './upstream-provider.js';

/** The purpose of the state that a browser takes to a provider and back. */
const PURPOSE = 'upstream-sign-in';
/** Long enough for a password, a second factor and a lost phone; in seconds. */
const STATE_TTL = 600;

/** What the state holds: which provider it names, what the sign-in needs, and where the browser ends up. */
interface SignInUnderWay {
  readonly slug: string;
  readonly remembered: Remembered;
  readonly redirectTo: string;
  readonly crossSite?: boolean;
}

/** How a sign-in begins. */
export interface SignInStart {
  /** Where the browser ends up; the caller has made sure that it is ours. */
  readonly redirectTo: string;
  readonly loginHint?: string | undefined;
  /** The secret of the browser's cookie: the sign-in can be completed in this browser alone. */
  readonly browser: string;
  /** Whether a page of another site sent the browser: the person may not have asked for the sign-in. */
  readonly crossSite?: boolean;
}

/** A sign-in that is back from its provider, its state spent. */
export interface ReturnedSignIn {
  /** The slug of the provider. */
  readonly provider: string;
  readonly redirectTo: string;
  readonly crossSite: boolean;
  /**
   * Asks the provider who signed in; once.
   *
   * @throws DomainError sign_in_failed, sign_in_refused or upstream_unavailable; the log has why
   */
  identify(): Promise<UpstreamIdentity>;
}

/** The identity providers people sign in with before they touch a key, in the configured order. */
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
   * @throws ConfigProblems with the problems of all of them, a line each
   */
  static async connect(
    config: Pick<Config, 'http' | 'upstream'>,
    states: SingleUseStates,
  ): Promise<IdentityProviders> {
    const { providers, extraCaCerts } = config.upstream;
    const redirectUri = `${config.http.baseUrl}/oauth/callback`;
    const http = new UpstreamHttp(extraCaCerts);
    const outcomes = await Promise.allSettled(
      providers.map((settings) => UPSTREAM_KINDS[settings.type](settings, redirectUri, http)),
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

  /** What the login page offers. */
  list(): { slug: string; name: string }[] {
    return [...this.providers.values()].map(({ slug, name }) => ({ slug, name }));
  }

  /** The origins a form of ours may end up at: for `form-action` of the Content-Security-Policy. */
  authorizationEndpointOrigins(): string[] {
    return [...new Set([...this.providers.values()].map(({ origin }) => origin))];
  }

  /**
   * Starts a sign-in.
   *
   * @returns where to send the browser
   * @throws DomainError unknown_provider
   */
  async begin(
    slug: string,
    { browser, redirectTo, loginHint, crossSite = false }: SignInStart,
  ): Promise<URL> {
    const provider = this.#find(slug);
    const remembered = provider.remember();
    const signIn: SignInUnderWay = { slug, remembered, redirectTo, crossSite };
    const state = await this.states.seal(PURPOSE, signIn, {
      binding: browser,
      ttlSeconds: STATE_TTL,
    });
    return provider.depart({ state, remembered, loginHint });
  }

  /**
   * Takes up a sign-in again, from the query of the provider's redirect to us. The state is spent with it.
   *
   * @throws DomainError invalid_state, unknown_provider
   */
  async resume(callback: { url: URL; browser: string }): Promise<ReturnedSignIn> {
    const parameters = callback.url.searchParams;
    const state = parameters.get('state') ?? '';
    const underWay = await this.states.redeem<SignInUnderWay>(PURPOSE, state, {
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

  /** Ends the connections to the providers, when no request needs them any more. */
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
