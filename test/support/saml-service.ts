import { randomBytes } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { onTestFinished } from 'vitest';
import { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import type { Clock } from '#platform/clock/clock.js';
import type { OidcProviderConfig, SamlProviderConfig } from '#platform/config/config.js';
import { fileDatabase } from './file-database.js';
import { readRequest, type ResponseFacts, type TestSamlIdp } from './saml-idp.js';

export const SERVICE_URL = 'https://svc.test';
const BROWSER = 'the secret of this browser';

/** A SAML sign-in that began at the service. */
export interface BegunSamlSignIn {
  readonly url: URL;
  readonly requestId: string;
  /** The encrypted state that the browser stores. */
  readonly kept: string;
}

/** The part of the service that handles SAML sign-ins, on a real database and without HTTP. */
export interface SamlService {
  /** Returns the connection to the database. */
  readonly dataSource: () => DataSource;
  /**
   * Creates the sign-in code of one replica, and connects it to identity providers. It stops when
   * the test ends.
   */
  readonly connect: (
    providers: readonly (OidcProviderConfig | SamlProviderConfig)[],
    clock: Clock,
  ) => Promise<IdentityProviders>;
}

/** Creates the database for a test file. Its replicas have the same secrets. */
export function samlService(): SamlService {
  const dataSource = fileDatabase();
  const secrets = { root: randomBytes(32).toString('hex'), previousRoot: undefined };
  const http = {
    baseUrl: SERVICE_URL,
    listen: { host: '', port: 0 },
    tls: undefined,
    mtls: { port: 0, clientCaCerts: [] },
    trustedProxies: [],
    corsOrigins: [],
  };
  return {
    dataSource,
    async connect(providers, clock) {
      const states = new SingleUseStates({ secrets }, dataSource().manager);
      const config = { http, secrets, upstream: { providers, extraCaCerts: [] } };
      const connected = await IdentityProviders.connect(config, states, clock, dataSource());
      onTestFinished(() => connected.onApplicationShutdown());
      return connected;
    },
  };
}

/** Returns the settings of a SAML provider in the form in which the configuration has them. */
export function samlSettings(
  idp: Pick<TestSamlIdp, 'metadataUrl'>,
  changes: Partial<SamlProviderConfig> = {},
): SamlProviderConfig {
  return {
    slug: 'corp',
    type: 'saml',
    name: 'Corp',
    metadataUrl: idp.metadataUrl,
    spEntityId: `${SERVICE_URL}/saml/metadata`,
    emailAttribute: undefined,
    domainAttribute: undefined,
    domains: undefined,
    ...changes,
  };
}

/** Begins a sign-in, and returns it with the state that a browser would store. */
export async function beginSaml(
  service: IdentityProviders,
  slug = 'corp',
): Promise<BegunSamlSignIn> {
  let kept = '';
  const url = await service.begin(slug, {
    redirectTo: '/account/keys',
    browser: BROWSER,
    keep: (_, state) => {
      kept = state;
    },
  });
  return { url, requestId: readRequest(url).id, kept };
}

/**
 * Finishes a sign-in after the service has received the SAML response. `handle` identifies the
 * received response, which the service has stored.
 */
export async function resumeSaml(
  service: IdentityProviders,
  { kept, handle, browser = BROWSER }: { kept: string; handle: string; browser?: string },
): Promise<UpstreamIdentity> {
  const url = new URL(`${SERVICE_URL}/saml/complete?response=${handle}`);
  const returned = await service.resume({ url, browser, kept });
  return returned.identify();
}

/**
 * Makes a whole sign-in. Returns the identity in the provider's response.
 *
 * @throws DomainError with the reason of a refusal
 */
export async function signInBySaml(
  service: IdentityProviders,
  idp: TestSamlIdp,
  changes: Partial<ResponseFacts> & Pick<ResponseFacts, 'now'>,
): Promise<UpstreamIdentity> {
  const { requestId, kept } = await beginSaml(service);
  const received = await service.receive(idp.respond({ requestId, ...changes }));
  if (received.kind === 'refused') throw received.error;
  return resumeSaml(service, { kept, handle: received.handle });
}
