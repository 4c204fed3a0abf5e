import { join } from 'node:path';
import type { Config, ProviderConfig, ValidConfig } from './config.js';
import { ENVIRONMENT, withoutEmpty, type Environment, type Settings } from './environment.js';
import {
  certificationProblems,
  missingProvider,
  originProblems,
  warningsOf,
} from './setting-rules.js';
import {
  loadProviders,
  nameOfSlug,
  problemLines,
  PROVIDER_VARIABLES,
} from './provider-settings.js';
import { githubProblems, githubSettings, githubWarnings } from './github-settings.js';
import {
  kmsProblems,
  kmsSettings,
  rootSecretProblems,
  rootSecretSource,
  signingKeyProblems,
} from './kms-settings.js';
import { tlsProblems, tlsSource, withTlsOrigin } from './tls-settings.js';
import { unknownNames, type KnownNames } from './unknown-variables.js';

/** The problems of a configuration: one line for each, with the variable's name and never its value. */
export class ConfigProblems extends Error {
  override readonly name = 'ConfigProblems';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** A valid configuration, and warnings for its operator. */
export interface LoadedConfig {
  readonly config: ValidConfig;
  readonly warnings: readonly string[];
}

/**
 * Turns an environment into the one frozen configuration.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadConfig(raw: Environment): LoadedConfig {
  const environment = withTlsOrigin(withoutEmpty(raw));
  const parsed = ENVIRONMENT.safeParse(environment);
  const { providers, problems: ofProviders } = loadProviders(environment);
  const unknown = unknownNames(environment, knownNames(environment));
  const problems = [
    ...(parsed.success ? [] : problemLines(parsed.error)),
    ...ofProviders,
    ...rootSecretProblems(environment),
    ...missingProvider(environment),
    ...originProblems(environment),
    ...tlsProblems(environment),
    ...certificationProblems(environment),
    ...githubProblems(environment),
    ...kmsProblems(environment),
    ...signingKeyProblems(environment),
    ...unknown.problems,
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigProblems(problems);
  const config = configOf(parsed.data, environment, providers);
  const warnings = [
    ...warningsOf(environment, config),
    ...githubWarnings(environment),
    ...unknown.warnings,
  ];
  return { config: deepFreeze(config), warnings };
}

/** Arranges valid settings by the part of the service that reads them. */
function configOf(
  settings: Settings,
  environment: Environment,
  providers: readonly ProviderConfig[],
): ValidConfig {
  return {
    http: httpSettings(settings, environment),
    relyingParty: {
      id: settings.SVC_RP_ID ?? new URL(settings.SVC_BASE_URL).hostname,
      name: settings.SVC_RP_NAME,
      organizationName: settings.SVC_ORG_NAME ?? settings.SVC_RP_NAME,
    },
    database: databaseSettings(settings),
    secrets: rootSecretSource(settings),
    upstream: { providers, extraCaCerts: settings.SVC_EXTRA_CA_CERTS },
    kms: kmsSettings(settings),
    documentKey: { kmsKeyIds: settings.SVC_DOCUMENT_KEY_KMS_KEY_ID },
    enrollment: {
      allowedDomains: settings.SVC_ALLOWED_DOMAINS,
      bootstrapAdmins: settings.SVC_BOOTSTRAP_ADMINS,
      allowedAaguids: settings.SVC_ALLOWED_AAGUIDS,
    },
    session: { hours: settings.SVC_SESSION_HOURS },
    certification: { token: settings.SVC_CERTIFICATION_TEST_TOKEN },
    oidc: oidcSettings(settings),
    ssh: {
      caKmsKeyIds: settings.SVC_SSH_CA_KMS_KEY_ID,
      caKey: settings.SVC_SSH_CA_KEY,
      caKeyPath: settings.SVC_SSH_CA_KEY_PATH ?? join(settings.SVC_DATA_DIR, 'ssh_ca_key'),
      principals: settings.SVC_SSH_PRINCIPALS,
      principalsDomain: settings.SVC_SSH_PRINCIPALS_DOMAIN,
      requireSecurityKey: settings.SVC_SSH_REQUIRE_SK,
    },
    aws: { audience: settings.SVC_AWS_AUDIENCE },
    github: githubSettings(settings),
    cleanUp: {
      intervalSeconds: settings.SVC_CLEANUP_INTERVAL,
      retentionDays: {
        auth: settings.SVC_AUTH_EVENTS_RETENTION_DAYS,
        oauth: settings.SVC_OAUTH_EVENTS_RETENTION_DAYS,
      },
    },
    log: { format: settings.SVC_LOG_FORMAT, filter: settings.RUST_LOG },
    securityContact: settings.SVC_SECURITY_CONTACT,
    metrics: { bearerToken: settings.SVC_METRICS_BEARER_TOKEN },
    tracing: tracingSettings(settings),
  };
}

function httpSettings(settings: Settings, environment: Environment): Config['http'] {
  return {
    baseUrl: settings.SVC_BASE_URL,
    listen: settings.SVC_LISTEN_ADDR,
    tls: tlsSource(environment),
    mtls: { port: settings.SVC_MTLS_PORT, clientCaCerts: settings.SVC_MTLS_CLIENT_CA_CERTS },
    trustedProxies: settings.SVC_TRUSTED_PROXIES,
    corsOrigins: settings.SVC_CORS_ORIGINS,
  };
}

function oidcSettings(settings: Settings): Config['oidc'] {
  return {
    signingKeys: { ec: settings.SVC_OIDC_SIGNING_KEY, rsa: settings.SVC_OIDC_RSA_SIGNING_KEY },
    signingKmsKeyIds: {
      ec: settings.SVC_OIDC_SIGNING_KMS_KEY_ID ?? [],
      rsa: settings.SVC_OIDC_RSA_SIGNING_KMS_KEY_ID ?? [],
    },
    deviceCode: {
      expiresSeconds: settings.SVC_DEVICE_CODE_EXPIRES,
      pollIntervalSeconds: settings.SVC_DEVICE_POLL_INTERVAL,
    },
  };
}

const DATABASE_ENVIRONMENT = ENVIRONMENT.pick({
  SVC_DATABASE_URL: true,
  SVC_DATA_DIR: true,
  SVC_DB_MAX_CONNECTIONS: true,
  SVC_DATABASE_FAILOVER: true,
});

/**
 * Returns the part of the configuration about the database, which `npm run migrate` needs.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadDatabaseConfig(environment: Environment): Config['database'] {
  const parsed = DATABASE_ENVIRONMENT.safeParse(withoutEmpty(environment));
  if (!parsed.success) throw new ConfigProblems(problemLines(parsed.error));
  return databaseSettings(parsed.data);
}

const OPERATOR_ENVIRONMENT = ENVIRONMENT.pick({
  SVC_DATABASE_URL: true,
  SVC_DATA_DIR: true,
  SVC_DB_MAX_CONNECTIONS: true,
  SVC_DATABASE_FAILOVER: true,
  SVC_LOG_FORMAT: true,
  RUST_LOG: true,
});

/**
 * Returns the parts of the configuration that the operator's commands need: the database and the log. The rest of the configuration
 * may be wrong, and the object store away, when they are needed most.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadOperatorConfig(environment: Environment): Pick<Config, 'database' | 'log'> {
  const parsed = OPERATOR_ENVIRONMENT.safeParse(withoutEmpty(environment));
  if (!parsed.success) throw new ConfigProblems(problemLines(parsed.error));
  const { SVC_LOG_FORMAT: format, RUST_LOG: filter } = parsed.data;
  return { database: databaseSettings(parsed.data), log: { format, filter } };
}

function tracingSettings(settings: Settings): Config['tracing'] {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = settings;
  return endpoint === undefined ? undefined : { endpoint, serviceName };
}

function databaseSettings(
  settings: Pick<Settings, keyof typeof DATABASE_ENVIRONMENT.shape>,
): Config['database'] {
  return {
    url: settings.SVC_DATABASE_URL,
    dataDir: settings.SVC_DATA_DIR,
    maxConnections: settings.SVC_DB_MAX_CONNECTIONS,
    failover: settings.SVC_DATABASE_FAILOVER,
  };
}

/** Returns every name that an operator may set, in this version or a later one, and the variable of the command's folder. */
function knownNames(environment: Environment): KnownNames {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  return {
    variables: [...Object.keys(ENVIRONMENT.shape), 'SVC_HOME'],
    ofProviders: PROVIDER_VARIABLES,
    slugs: slugs.success ? slugs.data.map(nameOfSlug) : [],
  };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
