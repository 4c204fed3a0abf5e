import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { SingleUseStates } from '#domain/sessions/single-use-states.service.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { UpstreamHttp } from './upstream-http.js';
import type { UpstreamIdentity } from './upstream-identity.js';
import { UPSTREAM_KINDS } from './upstream-kinds.js';
import type { Remembered, UpstreamProvider } from './upstream-provider.js';

/** The purpose of the state that a browser takes to a provider and back. */
const PURPOSE = 'upstream-sign-in';
/** Long enough for a password, a second factor and a lost phone; in seconds. */
const STATE_TTL = 600;

/** What the state holds: which provider it names, what the sign-in needs, and where the browser ends up. */
interface SignInUnderWay {
  readonly slug: string;
  readonly remembered: Remembered;
  readonly redirectTo: string;
}

/** The identity providers people sign in with before they touch a key, in the configured order. */
@Injectable()
export class IdentityProviders implements OnApplicationShutdown {
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
   * @param redirectTo where the browser ends up; the caller has made sure that it is ours
   * @param browser the secret of the browser's cookie: the sign-in can be completed in this browser alone
   * @returns where to send the browser
   * @throws DomainError unknown_provider
   */
  async begin(
    slug: string,
    options: { redirectTo: string; loginHint?: string | undefined; browser: string },
  ): Promise<URL> {
    const provider = this.#find(slug);
    const remembered = provider.remember();
    const signIn: SignInUnderWay = { slug, remembered, redirectTo: options.redirectTo };
    const state = await this.states.seal(PURPOSE, signIn, {
      binding: options.browser,
      ttlSeconds: STATE_TTL,
    });
    return provider.depart({ state, remembered, loginHint: options.loginHint });
  }

  /**
   * Completes a sign-in from the query of the provider's redirect to us. The state is spent whatever comes out.
   *
   * @throws DomainError invalid_state, unknown_provider, sign_in_failed, sign_in_refused or upstream_unavailable
   */
  async complete(callback: {
    url: URL;
    browser: string;
  }): Promise<{ identity: UpstreamIdentity; redirectTo: string }> {
    const parameters = callback.url.searchParams;
    const state = parameters.get('state') ?? '';
    const { slug, remembered, redirectTo } = await this.states.redeem<SignInUnderWay>(
      PURPOSE,
      state,
      {
        binding: callback.browser,
      },
    );
    const identity = await this.#find(slug).arrive({ parameters, state, remembered });
    return { identity, redirectTo };
  }

  /** Ends the connections to the providers, when no request needs them any more. */
  onApplicationShutdown(): Promise<void> {
    return this.http.close();
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
