import { isIP } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { isLoopbackHost } from '#platform/text/loopback.js';
import type { Config, OidcProviderConfig } from './config.js';
import {
  ENVIRONMENT,
  PROVIDER_ENVIRONMENT,
  withoutEmpty,
  type Environment,
  type Settings,
} from './environment.js';
import { tlsProblems, tlsSource, tlsWarnings, withTlsOrigin } from './tls-settings.js';
import { unknownNames, type KnownNames } from './unknown-variables.js';

/** Everything that is wrong with a configuration: one line each, naming the variable, never its value. */
export class ConfigProblems extends Error {
  override readonly name = 'ConfigProblems';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** A configuration that holds, and what its operator should still hear about it. */
export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly string[];
}

/** Settings whose promise this version cannot keep: refusing beats pretending. */
const NOT_BUILT_YET = [
  'SVC_JWT_HMAC_KMS_KEY_ID',
  'SVC_SSH_CA_KMS_KEY_ID',
  'SVC_OIDC_SIGNING_KMS_KEY_ID',
  'SVC_OIDC_RSA_SIGNING_KMS_KEY_ID',
  'SVC_DOCUMENT_KEY_KMS_KEY_ID',
  'SVC_S3_CONFIG_BUCKET',
  'SVC_SSH_REQUIRE_SK',
];

/** Settings of features that do not exist yet: they have no effect, which the start says. */
const WITHOUT_EFFECT_YET = [
  'SVC_AWS_AUDIENCE',
  'SVC_GITHUB_API_URL',
  'SVC_GITHUB_WEB_URL',
  'SVC_GITHUB_APP_ID',
  'SVC_GITHUB_APP_KEY',
  'SVC_GITHUB_APP_NAME',
  'SVC_GITHUB_APP_CLIENT_ID',
  'SVC_GITHUB_APP_CLIENT_SECRET',
  'SVC_GITHUB_WEBHOOK_SECRET',
  'SVC_S3_CONFIG_KEY',
  'SVC_S3_CONFIG_REGION',
  'SVC_S3_CONFIG_ENDPOINT',
  'SVC_S3_CONFIG_POLL_INTERVAL',
];

/** The variables of SAML providers, which this version refuses as a whole. */
const OF_SAML_PROVIDERS = ['METADATA_URL', 'SP_ENTITY_ID', 'EMAIL_ATTRIBUTE', 'DOMAIN_ATTRIBUTE'];

/**
 * Turns an environment into the one frozen configuration.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadConfig(raw: Environment): LoadedConfig {
  const environment = withTlsOrigin(withoutEmpty(raw));
  const problems: string[] = [];
  for (const name of NOT_BUILT_YET) {
    if (environment[name] !== undefined) problems.push(`${name}: is not supported by this version`);
  }
  const parsed = ENVIRONMENT.safeParse(environment);
  if (!parsed.success) problems.push(...problemLines(parsed.error));
  const providers = loadProviders(environment, problems);
  problems.push(...providerProblems(environment));
  problems.push(...originProblems(environment), ...tlsProblems(environment));
  problems.push(...certificationProblems(environment));
  const unknown = unknownNames(environment, knownNames(environment));
  problems.push(...unknown.problems);
  if (!parsed.success || problems.length > 0) throw new ConfigProblems(problems);

  const settings = parsed.data;
  const config: Config = {
    http: {
      baseUrl: settings.SVC_BASE_URL,
      listen: settings.SVC_LISTEN_ADDR,
      tls: tlsSource(environment),
      mtls: { port: settings.SVC_MTLS_PORT, clientCaCerts: settings.SVC_MTLS_CLIENT_CA_CERTS },
      trustedProxies: settings.SVC_TRUSTED_PROXIES,
      corsOrigins: settings.SVC_CORS_ORIGINS,
    },
    relyingParty: {
      id: settings.SVC_RP_ID ?? new URL(settings.SVC_BASE_URL).hostname,
      name: settings.SVC_RP_NAME,
      organizationName: settings.SVC_ORG_NAME ?? settings.SVC_RP_NAME,
    },
    database: databaseSettings(settings),
    secrets: { root: settings.SVC_JWT_SECRET, previousRoot: settings.SVC_JWT_SECRET_PREVIOUS },
    upstream: { providers, extraCaCerts: settings.SVC_EXTRA_CA_CERTS },
    enrollment: {
      allowedDomains: settings.SVC_ALLOWED_DOMAINS,
      bootstrapAdmins: settings.SVC_BOOTSTRAP_ADMINS,
      allowedAaguids: settings.SVC_ALLOWED_AAGUIDS,
    },
    session: { hours: settings.SVC_SESSION_HOURS },
    certification: { token: settings.SVC_CERTIFICATION_TEST_TOKEN },
    oidc: {
      signingKeys: { ec: settings.SVC_OIDC_SIGNING_KEY, rsa: settings.SVC_OIDC_RSA_SIGNING_KEY },
      deviceCode: {
        expiresSeconds: settings.SVC_DEVICE_CODE_EXPIRES,
        pollIntervalSeconds: settings.SVC_DEVICE_POLL_INTERVAL,
      },
    },
    ssh: {
      caKey: settings.SVC_SSH_CA_KEY,
      caKeyPath: settings.SVC_SSH_CA_KEY_PATH ?? join(settings.SVC_DATA_DIR, 'ssh_ca_key'),
      principals: settings.SVC_SSH_PRINCIPALS,
    },
    cleanUp: {
      intervalSeconds: settings.SVC_CLEANUP_INTERVAL,
      retentionDays: {
        auth: settings.SVC_AUTH_EVENTS_RETENTION_DAYS,
        oauth: settings.SVC_OAUTH_EVENTS_RETENTION_DAYS,
      },
    },
    log: { format: settings.SVC_LOG_FORMAT, filter: settings.RUST_LOG },
    metrics: { bearerToken: settings.SVC_METRICS_BEARER_TOKEN },
    tracing: tracingSettings(settings),
  };
  const warnings = [...warningsOf(environment, config), ...unknown.warnings];
  return { config: deepFreeze(config), warnings };
}

const DATABASE_ENVIRONMENT = ENVIRONMENT.pick({
  SVC_DATABASE_URL: true,
  SVC_DATA_DIR: true,
  SVC_DB_MAX_CONNECTIONS: true,
});

/**
 * Only the part of the configuration that names the database: what `npm run migrate` needs.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadDatabaseConfig(environment: Environment): Config['database'] {
  const parsed = DATABASE_ENVIRONMENT.safeParse(withoutEmpty(environment));
  if (!parsed.success) throw new ConfigProblems(problemLines(parsed.error));
  return databaseSettings(parsed.data);
}

function tracingSettings(settings: Settings): Config['tracing'] {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = settings;
  return endpoint === undefined ? undefined : { endpoint, serviceName };
}

function databaseSettings(
  settings: Pick<Settings, 'SVC_DATABASE_URL' | 'SVC_DATA_DIR' | 'SVC_DB_MAX_CONNECTIONS'>,
): Config['database'] {
  return {
    url: settings.SVC_DATABASE_URL,
    dataDir: settings.SVC_DATA_DIR,
    maxConnections: settings.SVC_DB_MAX_CONNECTIONS,
  };
}

function loadProviders(environment: Environment, problems: string[]): OidcProviderConfig[] {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  if (!slugs.success) return []; // already said
  return slugs.data.flatMap((slug) => {
    const prefix = `SVC_IDP_${nameOfSlug(slug)}_`;
    const own = Object.fromEntries(
      Object.keys(PROVIDER_ENVIRONMENT.shape).map((key) => [key, environment[prefix + key]]),
    );
    const parsed = PROVIDER_ENVIRONMENT.safeParse(own);
    if (!parsed.success) {
      problems.push(...problemLines(parsed.error, prefix));
      return [];
    }
    const { TYPE, NAME, ISSUER, CLIENT_ID, CLIENT_SECRET } = parsed.data;
    return [
      {
        slug,
        type: TYPE,
        name: NAME ?? slug,
        issuer: ISSUER,
        clientId: CLIENT_ID,
        clientSecret: CLIENT_SECRET,
      },
    ];
  });
}

/** Without an upstream provider nobody can sign in: only a conformance suite needs nobody to. */
function providerProblems(environment: Environment): string[] {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  const isMissing = slugs.success && slugs.data.length === 0;
  if (!isMissing || environment['SVC_CERTIFICATION_TEST_TOKEN'] !== undefined) return [];
  return ['SVC_IDPS: at least one upstream identity provider is required'];
}

/** What the public origin and the relying party must be to each other, where each is well-formed on its own. */
function originProblems(environment: Environment): string[] {
  const baseUrl = ENVIRONMENT.shape.SVC_BASE_URL.safeParse(environment['SVC_BASE_URL']);
  if (!baseUrl.success) return [];
  const { protocol, hostname } = new URL(baseUrl.data);
  const rpId = environment['SVC_RP_ID']?.toLowerCase() ?? hostname;
  const problems: string[] = [];
  if (protocol === 'http:' && !isLoopbackHost(hostname)) {
    problems.push('SVC_BASE_URL: must be https (http only for a loopback host)');
  }
  if (isIP(rpId.replace(/^\[|\]$/g, '')) !== 0) {
    problems.push(
      'SVC_RP_ID: an address cannot be a WebAuthn relying party id; use a host name in SVC_BASE_URL',
    );
  } else if (rpId !== 'localhost' && !rpId.includes('.')) {
    problems.push('SVC_RP_ID: must be localhost or a domain name of two labels or more');
  } else if (hostname !== rpId && !hostname.endsWith(`.${rpId}`)) {
    problems.push('SVC_RP_ID: must be the host of SVC_BASE_URL or a parent domain of it');
  }
  return problems;
}

function warningsOf(environment: Environment, config: Config): string[] {
  const warnings = WITHOUT_EFFECT_YET.filter((name) => environment[name] !== undefined).map(
    (name) => `${name}: has no effect in this version`,
  );
  if (new Set(Buffer.from(config.secrets.root)).size < 8) {
    warnings.push('SVC_JWT_SECRET: has fewer than 8 distinct bytes');
  }
  const { baseUrl, tls, trustedProxies } = config.http;
  if (baseUrl.startsWith('https:') && tls === undefined && trustedProxies.length === 0) {
    warnings.push(
      'SVC_TRUSTED_PROXIES: is empty although a proxy ends TLS; all clients share one address',
    );
  }
  const { hostname } = new URL(baseUrl);
  if (config.relyingParty.id !== hostname) {
    warnings.push(
      'SVC_RP_ID: is not the host of SVC_BASE_URL; every page under that domain can ask for touches of the same keys',
    );
  }
  if (
    environment['SVC_CERTIFICATION_HOST'] !== undefined &&
    environment['SVC_CERTIFICATION_TEST_TOKEN'] === undefined
  ) {
    warnings.push('SVC_CERTIFICATION_HOST: has no effect without SVC_CERTIFICATION_TEST_TOKEN');
  }
  warnings.push(...tlsWarnings(environment));
  return warnings;
}

/** Every name that an operator may set, in this version or a later one, and that of the command's folder. */
function knownNames(environment: Environment): KnownNames {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  return {
    variables: [
      ...Object.keys(ENVIRONMENT.shape),
      ...NOT_BUILT_YET,
      ...WITHOUT_EFFECT_YET,
      'SVC_HOME',
    ],
    ofProviders: [...Object.keys(PROVIDER_ENVIRONMENT.shape), ...OF_SAML_PROVIDERS],
    slugs: slugs.success ? slugs.data.map(nameOfSlug) : [],
  };
}

/** Names a provider as its variables do: `corp-saml` is `CORP_SAML`. */
function nameOfSlug(slug: string): string {
  return slug.replaceAll('-', '_').toUpperCase();
}

/** Certification test mode bypasses logins: on a public host it starts only where a second variable names that host. */
function certificationProblems(environment: Environment): string[] {
  if (environment['SVC_CERTIFICATION_TEST_TOKEN'] === undefined) return [];
  const baseUrl = ENVIRONMENT.shape.SVC_BASE_URL.safeParse(environment['SVC_BASE_URL']);
  if (!baseUrl.success) return []; // already said
  const { hostname } = new URL(baseUrl.data);
  const meant = environment['SVC_CERTIFICATION_HOST']?.toLowerCase();
  if (isLoopbackHost(hostname) || hostname === meant) return [];
  return [
    'SVC_CERTIFICATION_TEST_TOKEN: certification test mode starts on loopback alone, or where SVC_CERTIFICATION_HOST ' +
      'names the host of SVC_BASE_URL',
  ];
}

function problemLines(error: z.ZodError, prefix = ''): string[] {
  const lines = error.issues.map((issue) => {
    const missing = issue.code === 'invalid_type' && issue.message.includes('received undefined');
    return `${prefix}${String(issue.path[0])}: ${missing ? 'is required' : issue.message}`;
  });
  return [...new Set(lines)];
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
