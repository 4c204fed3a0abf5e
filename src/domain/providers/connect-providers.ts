import { RequestIds } from './saml/request-ids.js';
import { SpKeys } from './saml/sp-keys/sp-keys.js';
import type { Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { OidcUpstream } from './oidc-upstream.js';
import type { SamlParts, SamlUpstream } from './saml-upstream.js';
import { mayNameIssuer } from './tenancy.js';
import type { UpstreamProvider } from './upstream-provider.js';

/**
 * The configuration of the identity providers. Only a SAML provider needs `secrets`. The root
 * secret encrypts the private keys with which this service signs SAML requests, and authenticates
 * the ids of these requests.
 */
export type ProvidersConfig = Pick<Config, 'http' | 'upstream'> & Partial<Pick<Config, 'secrets'>>;

/**
 * The identity providers that were connected, in the configured order, with the parts that they
 * share.
 */
export interface ConnectedProviders {
  readonly providers: ReadonlyMap<string, UpstreamProvider>;
  readonly http: UpstreamHttp;
  /** The SAML providers; undefined if none is configured. */
  readonly saml: ConnectedSaml | undefined;
}

/** The SAML providers, in the configured order, with the parts that only SAML needs. */
export interface ConnectedSaml {
  readonly providers: readonly SamlUpstream[];
  /** The keys with which this service signs SAML requests. */
  readonly spKeys: SpKeys;
  readonly parseResponse: SamlLibrary['parseSamlResponse'];
}

type SamlLibrary = typeof import('./saml-upstream.js');

/** The loaded code of SAML, with the parts that the SAML providers share. */
interface OpenedSaml {
  readonly library: SamlLibrary;
  readonly parts: SamlParts;
}

/**
 * Fetches the published documents of every configured provider at the same time, and makes the
 * provider from them.
 *
 * @throws ConfigProblems with one line for each problem of each provider
 */
export async function connectProviders(
  config: ProvidersConfig,
  clock: Clock,
  dataSource: DataSource | undefined,
): Promise<ConnectedProviders> {
  const { providers, extraCaCerts } = config.upstream;
  const redirectUri = `${config.http.baseUrl}/oauth/callback`;
  const http = new UpstreamHttp(extraCaCerts);
  try {
    const saml = await openSaml(config, http, clock, dataSource);
    const outcomes = await Promise.allSettled(
      providers.map((settings): Promise<UpstreamProvider> =>
        settings.type === 'oidc'
          ? OidcUpstream.connect(settings, redirectUri, http, clock)
          : required(saml).library.SamlUpstream.connect(settings, required(saml).parts),
      ),
    );
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    const connected = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    );
    const problems = [
      ...failures.flatMap(({ reason }) => problemsOf(reason)),
      ...sharedEntityIds(connected, saml),
    ];
    if (problems.length > 0) throw new ConfigProblems(problems);
    const bySlug = new Map(connected.map((provider) => [provider.slug, provider]));
    return { providers: bySlug, http, saml: saml && connectedSaml(saml, connected) };
  } catch (error) {
    await http.close();
    throw error;
  }
}

function problemsOf(reason: unknown): readonly string[] {
  if (reason instanceof ConfigProblems) return reason.problems;
  throw reason;
}

/**
 * Loads the code of SAML and makes the parts that all SAML providers share. Returns undefined if no
 * SAML provider is configured, so that such a deployment loads no XML library and makes no key for
 * SAML.
 */
async function openSaml(
  config: ProvidersConfig,
  http: UpstreamHttp,
  clock: Clock,
  dataSource: DataSource | undefined,
): Promise<OpenedSaml | undefined> {
  if (config.upstream.providers.every(({ type }) => type === 'oidc')) return undefined;
  const library = await import('./saml-upstream.js');
  const secrets = required(config.secrets);
  const spKeys = await SpKeys.open({
    config: { ...config, secrets },
    dataSource: required(dataSource),
    clock,
  });
  const parts = {
    acsUrl: `${config.http.baseUrl}/saml/acs`,
    http,
    clock,
    requestIds: new RequestIds(secrets, clock),
    spKeys,
    manager: required(dataSource).manager,
  };
  return { library, parts };
}

function connectedSaml(
  { library, parts }: OpenedSaml,
  connected: readonly UpstreamProvider[],
): ConnectedSaml {
  return {
    providers: connected.filter((provider) => provider instanceof library.SamlUpstream),
    spKeys: parts.spKeys,
    parseResponse: library.parseSamlResponse,
  };
}

function required<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('a SAML provider needs the root secret and the database');
  return part;
}

/**
 * Returns a problem of the configuration for each SAML provider that has the same issuer as another
 * provider. Users are bound to issuer and subject, so the users of two such providers could not be
 * told apart.
 */
function sharedEntityIds(
  providers: readonly UpstreamProvider[],
  saml: OpenedSaml | undefined,
): string[] {
  if (saml === undefined) return [];
  return providers.flatMap((provider) => {
    const others = providers.filter((other) => other !== provider);
    const isShared = others.some((other) => mayNameIssuer(other, provider.issuer));
    if (!(provider instanceof saml.library.SamlUpstream) || !isShared) return [];
    const variable = providerVariable(provider.slug, 'METADATA_URL');
    return [`${variable}: the metadata has the entityID of another provider`];
  });
}
