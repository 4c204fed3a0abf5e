import { X509Certificate, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { holdsCertificates, holdsPrivateKey, readPem } from '#platform/tls/tls-material.js';
import { parseLogFilter } from './log-filter.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import type { AaguidPolicy } from './config.js';

/** The environment as plain strings; an empty string counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const lowerCasedSet = list.transform((items) => new Set(items.map(asciiLowerCase)));
const wholeNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, `must be between ${minimum} and ${maximum}`);

const origin = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    return refuse(context, 'must be an http or https URL');
  }
  if (url.username || url.password || url.search || url.hash || url.pathname !== '/') {
    return refuse(context, 'must be an origin only, without path, query or credentials');
  }
  return url.origin;
});

const httpUrl = z
  .string()
  .refine(
    (text) => /^https?:\/\//i.test(text) && URL.canParse(text),
    'must be an http or https URL',
  );

const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (!match || port > 65_535 || (host !== '' && isIP(host) === 0 && host !== 'localhost')) {
    return refuse(context, 'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000');
  }
  return { host: host === '' ? '::' : host, port };
});

const cidrList = list.transform((items, context) => {
  for (const item of items) {
    const [address = '', bits, ...rest] = item.split('/');
    const width = isIP(address) === 6 ? 128 : 32;
    const prefixFits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width);
    if (isIP(address) === 0 || rest.length > 0 || !prefixFits) {
      return refuse(context, 'must be a comma-separated list of addresses or CIDR ranges');
    }
  }
  return items;
});

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const aaguidPolicy = list.transform((items, context): AaguidPolicy => {
  const [only] = items;
  if (items.length === 1 && (only === 'fips-only' || only === 'yubikey-5')) return { kind: only };
  const aaguids = items.map((item) => item.toLowerCase());
  if (!aaguids.every((item) => UUID.test(item))) {
    return refuse(context, 'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs');
  }
  return aaguids.length === 0 ? { kind: 'any' } : { kind: 'list', aaguids: new Set(aaguids) };
});

const certificates = z.string().transform((text, context): string[] => {
  try {
    const blocks =
      readPem(text).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length > 0 && blocks.every((block) => new X509Certificate(block).raw.length > 0)) {
      return blocks;
    }
  } catch {
    // The message below omits the reason, which may quote the value.
  }
  return refuse(context, 'must be PEM certificates, or a readable file of them');
});

const logDirectives = z.string().transform((text, context) => {
  try {
    parseLogFilter(text);
    return text;
  } catch {
    return refuse(
      context,
      'must be directives such as info,security=warn; levels are trace to off',
    );
  }
});

/** Blocks of PEM, base64 of it, or a file of it: the first is the private key that signs, the others are only published. */
const signingKeys = (fits: (key: KeyObject) => boolean, message: string) =>
  z.string().transform((text, context): string[] => {
    try {
      const pem = readPem(text);
      const blocks = pem.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g) ?? [];
      const [first = '', ...others] = blocks;
      const isWhole = pem.split('-----BEGIN ').length - 1 === blocks.length;
      const isSigning = isWhole && fits(createPrivateKey(first));
      if (isSigning && others.every((other) => fits(createPublicKey(other)))) return blocks;
    } catch {
      // The message below omits the reason, which may quote the value.
    }
    return refuse(context, message);
  });

function isP256({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean {
  return type === 'ec' && details?.namedCurve === 'prime256v1';
}

function isLongRsa({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean {
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 3072;
}

/** An RSA private key in PKCS#1 or PKCS#8, which becomes PKCS#8. */
const rsaPrivateKey = z.string().transform((text, context): string => {
  try {
    const key = createPrivateKey(readPem(text));
    if (key.asymmetricKeyType === 'rsa') {
      return key.export({ type: 'pkcs8', format: 'pem' }).toString();
    }
  } catch {
    // The message below omits the reason, which may quote the value.
  }
  return refuse(context, 'must be an RSA private key in PEM, base64 of it, or a readable file');
});

const headerText = z
  .string()
  .max(255, 'must have 255 characters at most')
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces');

/** An address that is https, loopback apart, without query; a trailing slash is dropped. */
const httpsUrl = z.string().transform((text, context): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.username || url.password || url.search || url.hash) {
    return refuse(context, 'must be a URL without query or credentials');
  }
  if (!isHttpsOrLoopback(text)) return refuse(context, 'must be https (http only for localhost)');
  return url.href.replace(/\/+$/, '');
});

const shortName = z.string().max(64, 'must have 64 characters at most');

const rootSecret = z
  .string()
  .min(32, 'must have at least 32 characters')
  .refine((text) => new Set(text).size > 1, 'must not be one repeated character');

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

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

  SVC_DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .optional(), // default: the embedded server
  SVC_DATA_DIR: z.string().default('./data'),
  SVC_DB_MAX_CONNECTIONS: wholeNumber(1, 1000).default(25),

  SVC_JWT_SECRET: rootSecret, // no default secret, ever
  SVC_JWT_SECRET_PREVIOUS: rootSecret.optional(),

  SVC_OIDC_SIGNING_KEY: signingKeys(
    isP256,
    'must be P-256 keys in PEM, a private one first',
  ).optional(), // default: the database keeps one
  SVC_OIDC_RSA_SIGNING_KEY: signingKeys(
    isLongRsa,
    'must be RSA keys of 3072 bits or more in PEM, a private one first',
  ).optional(), // default: the database keeps one
  SVC_DEVICE_CODE_EXPIRES: wholeNumber(60, 3600).default(600), // seconds
  SVC_DEVICE_POLL_INTERVAL: wholeNumber(1, 60).default(5), // seconds

  SVC_SSH_CA_KEY: z.string().optional(),
  SVC_SSH_CA_KEY_PATH: z.string().optional(), // default: {data}/ssh_ca_key
  SVC_SSH_PRINCIPALS: list
    .pipe(z.array(z.enum(['email', 'username'], 'must be email, username, or both')).min(1))
    .default(['email'])
    .transform((kinds) => new Set(kinds)),
  SVC_SSH_REQUIRE_SK: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .transform((text) => text === 'true'),

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

  SVC_GITHUB_APP_ID: z
    .string()
    .regex(/^\d{1,12}$/, 'must be the number of a GitHub App')
    .optional(),
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

  SVC_CLEANUP_INTERVAL: wholeNumber(0, 86_400).default(900), // seconds; 0: never
  SVC_AUTH_EVENTS_RETENTION_DAYS: wholeNumber(0, 36_500).default(90),
  SVC_OAUTH_EVENTS_RETENTION_DAYS: wholeNumber(0, 36_500).default(90),

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

/** The shape of one provider's variables, SVC_IDP_<SLUG>_*. */
export const PROVIDER_ENVIRONMENT = z.object({
  TYPE: z
    .string()
    .refine((type) => type !== 'saml', 'saml is not built yet')
    .refine((type) => type === 'saml' || type === 'oidc', 'must be oidc')
    .transform(() => 'oidc' as const),
  NAME: shortName.optional(),
  ISSUER: z
    .string()
    .refine((text) => URL.canParse(text), { error: 'must be a URL', abort: true })
    .refine((text) => isHttpsOrLoopback(text), 'must be https (http only for localhost)'),
  CLIENT_ID: z.string(),
  CLIENT_SECRET: z.string(),
});

/** The settings of one identity provider. */
export type ProviderSettings = z.output<typeof PROVIDER_ENVIRONMENT>;

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
