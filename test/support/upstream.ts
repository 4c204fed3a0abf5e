import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { systemClock } from '#platform/clock/clock.js';
import type { OidcProviderConfig } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { fileDatabase } from './file-database.js';
import { startFakeIdp, type FakeIdp } from './fake-idp.js';

export const BASE_URL = 'https://svc.test';
export const REDIRECT_URI = `${BASE_URL}/oauth/callback`;
export const BROWSER = 'the secret of this browser';

/** Starts an identity provider for the duration of the test. */
export async function fakeIdp(...options: Parameters<typeof startFakeIdp>): Promise<FakeIdp> {
  const idp = await startFakeIdp(...options);
  onTestFinished(() => idp.close());
  return idp;
}

/** Returns the configuration of an identity provider, as an operator would write it. */
export function settingsOf(
  idp: Pick<FakeIdp, 'issuer' | 'clientId' | 'clientSecret'>,
  slug = 'corp',
): OidcProviderConfig {
  const { issuer, clientId, clientSecret } = idp;
  const client = { issuer, clientId, clientSecret, domains: undefined };
  return { slug, type: 'oidc', name: `Sign in with ${slug}`, ...client };
}

/**
 * The service's code for signing in through identity providers. It uses a real database, because a
 * sign-in's state can be used only once.
 */
export interface UpstreamSuite {
  /** Connects to identity providers for the duration of the test. */
  readonly connect: (
    providers: OidcProviderConfig[],
    extraCaCerts?: string[],
  ) => Promise<IdentityProviders>;
  /**
   * Returns the lines of the error with which the service refuses to start with these providers.
   */
  readonly problemsOf: (...providers: OidcProviderConfig[]) => Promise<readonly string[]>;
  /** Signs a user in through an identity provider, which has the faults that the test has set. */
  readonly signIn: (idp: FakeIdp) => Promise<UpstreamIdentity>;
}

/** Creates the database of a test file, and the functions that use it. */
export function upstreamSuite(): UpstreamSuite {
  const dataSource = fileDatabase();

  const secrets = { root: randomBytes(32).toString('hex'), previousRoot: undefined };
  const http = { baseUrl: BASE_URL, listen: { host: '', port: 0 } };
  const mtls = { port: 0, clientCaCerts: [] };
  const suite: UpstreamSuite = {
    async connect(providers, extraCaCerts = []) {
      const states = new SingleUseStates({ secrets }, dataSource().manager);
      const config = {
        http: { ...http, tls: undefined, mtls, trustedProxies: [], corsOrigins: [] },
        upstream: { providers, extraCaCerts },
      };
      const connected = await IdentityProviders.connect(config, states, systemClock);
      onTestFinished(() => connected.onApplicationShutdown());
      return connected;
    },
    async problemsOf(...providers) {
      const attempt = suite.connect(providers);
      const error: unknown = await attempt.catch((reason: unknown) => reason);
      if (error instanceof ConfigProblems) return error.problems;
      throw new Error('the start did not fail', { cause: error });
    },
    async signIn(idp) {
      const providers = await suite.connect([settingsOf(idp)]);
      const url = await providers.begin('corp', { redirectTo: '/account/keys', browser: BROWSER });
      const callback = { url: idp.authorize(url), browser: BROWSER };
      const { identity } = await complete(providers, callback);
      return identity;
    },
  };
  return suite;
}

/**
 * Completes a sign-in after the provider has sent the browser back. Returns the identity, and the
 * address to which the browser is redirected next.
 */
export async function complete(
  providers: IdentityProviders,
  callback: { readonly url: URL; readonly browser: string },
): Promise<{ readonly identity: UpstreamIdentity; readonly redirectTo: string }> {
  const returned = await providers.resume(callback);
  return { identity: await returned.identify(), redirectTo: returned.redirectTo };
}

/**
 * Waits until an attempt fails, and returns its DomainError.
 * @throws Error if the attempt succeeds, or fails with any other error
 */
export async function refusal(attempt: Promise<unknown>): Promise<DomainError> {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof DomainError) return error;
  throw new Error('it was not refused', { cause: error });
}
