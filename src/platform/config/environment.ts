import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { holdsCertificates, holdsPrivateKey } from '#platform/tls/tls-material.js';
import { databaseUrl } from '#platform/config/shapes/database-url.js';
import {
  aaguidPolicy,
  attributeName,
  certificates,
  cidrList,
  contactUri,
  digits,
  domainName,
  domainPatterns,
  flag,
  entityId,
  headerText,
  httpUrl,
  httpsUrl,
  isLongRsa,
  kmsKeyId,
  kmsKeyIds,
  isP256,
  list,
  listenAddress,
  logDirectives,
  lowerCasedSet,
  metadataUrl,
  origin,
  rootSecret,
  rsaPrivateKey,
  shortName,
  signingKeys,
  wholeNumber,
} from '#platform/config/shapes/setting-shapes.js';

/** The environment as plain strings; an empty string counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The texts about variables of PEM keys. */
export const PEM_KEYS = {
  SVC_OIDC_SIGNING_KEY: 'must be P-256 keys in PEM, a private one first',
  SVC_OIDC_RSA_SIGNING_KEY: 'must be RSA keys of 3072 bits or more in PEM, a private one first',
} as const;

/** One line a variable: its shape and its default. Cross-field rules are in load-config.ts. */
export const ENVIRONMENT = z.object({
  SVC_BASE_URL: origin.default('http://localhost:3000'),
  SVC_RP_ID: z.string().toLowerCase().optional(), // default: the host of the base URL
  SVC_RP_NAME: shortName.default('svc'),
  SVC_ORG_NAME: shortName.optional(), // default: the RP name
  SVC_LISTEN_ADDR: listenAddress.default({ host: '::', port: 3000 }), // ignored with TLS
  SVC_TLS_CERT: z // both or neither; read again on SIGHUP
    .string()
    .refine(holdsCertificates, 'must be PEM certificates, base64 of them, or a readable file')
    .optional(),
  SVC_TLS_KEY: z
    .string()
    .refine(holdsPrivateKey, 'must be a PEM private key, base64 of it, or a readable file')
    .optional(),
  SVC_MTLS_PORT: wholeNumber(1, 65_535).default(8443),
  SVC_MTLS_CLIENT_CA_CERTS: certificates.default([]), // PEM, or the path of a PEM file
  SVC_TRUSTED_PROXIES: cidrList.default([]),
  SVC_CORS_ORIGINS: list
    .refine((items) => !items.includes('*'), 'must name origins: * is refused')
    .pipe(z.array(origin.refine((text) => !text.includes('*'), 'must name origins: * is refused')))
    .default([]),

  SVC_DATABASE_URL: databaseUrl.optional(), // default: the embedded server
  SVC_DATA_DIR: z.string().default('./data'),
  SVC_DB_MAX_CONNECTIONS: wholeNumber(1, 1000).default(25),
  SVC_DATABASE_FAILOVER: z
    .enum(['synchronous', 'asynchronous'], 'must be synchronous or asynchronous')
    .optional(), // unset: with proof of a loss, or if no replica can tell

  SVC_JWT_SECRET: rootSecret.optional(), // no default secret, ever: this one, or else the key in KMS
  SVC_JWT_SECRET_PREVIOUS: rootSecret.optional(),
  SVC_JWT_HMAC_KMS_KEY_ID: kmsKeyId.optional(),
  SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS: kmsKeyId.optional(),

  SVC_OIDC_SIGNING_KEY: signingKeys(isP256, PEM_KEYS.SVC_OIDC_SIGNING_KEY).optional(), // default: the database keeps one
  SVC_OIDC_RSA_SIGNING_KEY: signingKeys(isLongRsa, PEM_KEYS.SVC_OIDC_RSA_SIGNING_KEY).optional(), // default: the database keeps one
  SVC_OIDC_SIGNING_KMS_KEY_ID: kmsKeyIds.optional(),
  SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: kmsKeyIds.optional(),
  SVC_DOCUMENT_KEY_KMS_KEY_ID: kmsKeyIds
    .refine(
      (ids) => ids.every((id) => !id.includes('alias/')),
      'must not name an alias: what a key wrapped, only that key opens',
    )
    .default([]), // no organization can have an issuer
  AWS_ENDPOINT_URL_KMS: z.string().optional(), // default: AWS_ENDPOINT_URL, or else the address of AWS
  AWS_ENDPOINT_URL: z.string().optional(),
  SVC_DEVICE_CODE_EXPIRES: wholeNumber(60, 3600).default(600), // seconds
  SVC_DEVICE_POLL_INTERVAL: wholeNumber(1, 60).default(5), // seconds

  SVC_SSH_CA_KMS_KEY_ID: kmsKeyIds.default([]), // the first signs, before those of the next two
  SVC_SSH_CA_KEY: z.string().optional(),
  SVC_SSH_CA_KEY_PATH: z.string().optional(), // default: {data}/ssh_ca_key
  SVC_SSH_PRINCIPALS: list
    .pipe(z.array(z.enum(['email', 'username'], 'must be email, username, or both')).min(1))
    .default(['email'])
    .transform((kinds) => new Set(kinds)),
  SVC_SSH_PRINCIPALS_DOMAIN: domainName.optional(), // unset: the only organization has the user names
  SVC_SSH_REQUIRE_SK: flag.default('false').transform((text) => text === 'true'),

  SVC_AWS_AUDIENCE: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters without a space')
    .default('sts.amazonaws.com'),

  SVC_IDPS: list
    .pipe(z.array(z.string().regex(/^(?!-)[a-z0-9-]{1,32}(?<!-)$/, 'has a malformed slug')))
    .refine((slugs) => new Set(slugs).size === slugs.length, 'names a slug twice')
    .default([]), // required, except in certification test mode
  SVC_EXTRA_CA_CERTS: certificates.default([]), // PEM, or the path of a PEM file

  SVC_ALLOWED_DOMAINS: lowerCasedSet.optional(), // unset: any domain may enroll
  SVC_BOOTSTRAP_ADMINS: lowerCasedSet.optional(), // unset: the first user of an organization
  SVC_ALLOWED_AAGUIDS: aaguidPolicy.default({ kind: 'any' }),
  SVC_CERTIFICATION_TEST_TOKEN: z.string().min(32, 'must have at least 32 characters').optional(),
  SVC_CERTIFICATION_HOST: z.string().toLowerCase().optional(), // unset: that mode starts on loopback alone
  SVC_SESSION_HOURS: wholeNumber(1, 12).default(8), // NIST SP 800-63B-4 AAL3: 12 hours at most

  SVC_GITHUB_APP_ID: digits.optional(),
  SVC_GITHUB_APP_KEY: rsaPrivateKey.optional(), // PEM, base64 of PEM, or a file
  SVC_GITHUB_APP_NAME: z
    .string()
    .regex(/^(?! )[\x20-\x7e]{1,64}(?<! )$/, 'must be 64 printable ASCII characters at most')
    .optional(),
  SVC_GITHUB_APP_CLIENT_ID: headerText.optional(),
  SVC_GITHUB_APP_CLIENT_SECRET: headerText.optional(),
  SVC_GITHUB_WEBHOOK_SECRET: z.string().min(8, 'must have at least 8 characters').optional(),
  SVC_GITHUB_API_URL: httpsUrl.default('https://api.github.com'),
  SVC_GITHUB_WEB_URL: origin.optional(), // default: github.com, or else the origin of the API

  SVC_S3_CONFIG_BUCKET: z
    .string()
    .regex(/^[\w.:/-]{3,255}$/, 'must be the name of a bucket')
    .optional(), // unset: no object store
  SVC_S3_CONFIG_KEY: z
    .string()
    .max(1024, 'must have 1024 characters at most')
    .default('config/svc-server.json'),
  SVC_S3_CONFIG_REGION: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'must be a region such as eu-central-1, or auto')
    .default('auto'),
  SVC_S3_CONFIG_ENDPOINT: httpsUrl.optional(), // default: AWS
  SVC_S3_CONFIG_POLL_INTERVAL: wholeNumber(1, 86_400).default(60), // seconds

  SVC_CLEANUP_INTERVAL: wholeNumber(0, 86_400).default(900), // seconds; 0: never
  SVC_AUTH_EVENTS_RETENTION_DAYS: wholeNumber(0, 36_500).default(90),
  SVC_OAUTH_EVENTS_RETENTION_DAYS: wholeNumber(0, 36_500).default(90),

  SVC_SECURITY_CONTACT: contactUri.optional(), // unset: no /.well-known/security.txt

  SVC_LOG_FORMAT: z.enum(['text', 'json'], 'must be text or json').default('text'),
  RUST_LOG: logDirectives.default('info'),
  SVC_METRICS_BEARER_TOKEN: z
    .string()
    .regex(/^(?! )[\x20-\x7e]+(?<! )$/, 'must be printable ASCII: it has to fit into a header')
    .optional(), // unset: no /metrics
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(), // unset: no tracing
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .literal('http/protobuf', 'must be http/protobuf, the only one that is spoken')
    .default('http/protobuf'),
  OTEL_SERVICE_NAME: z.string().default('svc-server'),
});

/** The settings that {@link ENVIRONMENT} parses from an environment. */
export type Settings = z.output<typeof ENVIRONMENT>;

/** The shape of the variables of an OpenID Connect provider, SVC_IDP_<SLUG>_*. */
const OIDC_PROVIDER_ENVIRONMENT = z.object({
  TYPE: z.literal('oidc'),
  NAME: shortName.optional(),
  ISSUER: z
    .string()
    .refine((text) => URL.canParse(text), { error: 'must be a URL', abort: true })
    .refine((text) => isHttpsOrLoopback(text), 'must be https (http only for localhost)'),
  CLIENT_ID: z.string(),
  CLIENT_SECRET: z.string(),
  DOMAINS: domainPatterns.optional(), // unset: it may vouch for every domain
});

/** The shape of the variables of a SAML provider, SVC_IDP_<SLUG>_*. */
const SAML_PROVIDER_ENVIRONMENT = z.object({
  TYPE: z.literal('saml'),
  NAME: shortName.optional(),
  METADATA_URL: metadataUrl,
  SP_ENTITY_ID: entityId.optional(), // default: {base}/saml/metadata
  EMAIL_ATTRIBUTE: attributeName.optional(), // unset: the NameID of the format emailAddress
  DOMAIN_ATTRIBUTE: attributeName.optional(), // unset: the domain of the e-mail address
  DOMAINS: domainPatterns.optional(), // unset: it may vouch for every domain
});

/** The shape of one provider's variables by its type. A variable of the other type is a problem. */
export const PROVIDER_ENVIRONMENT = {
  oidc: OIDC_PROVIDER_ENVIRONMENT,
  saml: SAML_PROVIDER_ENVIRONMENT,
} as const;

/** The variables of providers of every type. */
export const PROVIDER_SHAPES = {
  ...OIDC_PROVIDER_ENVIRONMENT.shape,
  ...SAML_PROVIDER_ENVIRONMENT.shape,
  TYPE: z.enum(['oidc', 'saml'], 'must be oidc or saml'),
};

/** The process's environment over that of `.env`, where there is one; empty strings count as unset. */
export function readEnvironment(): Environment {
  return withoutEmpty({ ...readDotEnv(), ...readProcessEnvironment() });
}

/** The process's environment alone; empty strings count as unset. */
export function readProcessEnvironment(): Environment {
  return withoutEmpty(process.env);
}

/** Decides for a library that listens to nothing but a variable, which no operator is meant to set. */
export function setProcessVariable(name: string, value: string): void {
  process.env[name] = value;
}

/** Removes variables that are set to the empty string. */
export function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
}

function readDotEnv(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}
