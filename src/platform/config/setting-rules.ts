import { isIP } from 'node:net';
import { isHttpsOrLoopback, isLoopbackHost } from '#platform/text/loopback.js';
import { isPrivate } from '#platform/tls/pem.js';
import { holdsCertificates, holdsPrivateKey, readTlsMaterial } from '#platform/tls/tls-material.js';
import type { KmsKeySetting, ValidConfig } from './config.js';
import type { Environment } from './environment.js';
import { DATABASE_PAGE, parseDatabaseUrl } from '#platform/database/url/database-url.js';
import { SIGNING_KEY_PROBLEMS } from './shapes/key-shapes.js';
import { TABLE, VARIABLES } from './table/table.js';

/** The address of GitHub's own API. */
export const PUBLIC_API = TABLE.github.apiUrl.shape.parse(undefined);

/** The variables of which either all are set, or none. */
const TOGETHER = [
  ['SVC_TLS_CERT', 'SVC_TLS_KEY'],
  [
    'SVC_GITHUB_APP_ID',
    'SVC_GITHUB_APP_KEY',
    'SVC_GITHUB_APP_NAME',
    'SVC_GITHUB_APP_CLIENT_ID',
    'SVC_GITHUB_APP_CLIENT_SECRET',
    'SVC_GITHUB_WEBHOOK_SECRET',
  ],
] as const;

/** The variables that have an effect only with others: their pattern, and one of the others. */
const NEEDS = [
  [/^SVC_MTLS_/, 'SVC_TLS_CERT', 'SVC_TLS_CERT and SVC_TLS_KEY'],
  [/^SVC_CERTIFICATION_HOST$/, 'SVC_CERTIFICATION_TEST_TOKEN'],
  [/^SVC_S3_CONFIG_/, 'SVC_S3_CONFIG_BUCKET'],
  [/^SVC_GITHUB_(?:API|WEB)_URL$/, 'SVC_GITHUB_APP_ID'],
] as const;

/** Lists the problems between variables. A value that its own row refuses is not among them. */
export function problemsOf(environment: Environment): string[] {
  return [
    ...rootSecretProblems(environment),
    ...missingProvider(environment),
    ...originProblems(environment),
    ...tlsProblems(environment),
    ...TOGETHER.flatMap((names) => missingOf(names, environment)),
    ...certificationProblems(environment),
    ...kmsProblems(environment),
    ...signingKeyProblems(environment),
  ];
}

/**
 * Derives settings from TLS. If the service itself ends TLS, the default public origin is that of
 * the relying party, and SVC_LISTEN_ADDR is ignored.
 */
export function withTlsOrigin(environment: Environment): Environment {
  const { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_RP_ID: rpId } = environment;
  if (cert === undefined || key === undefined) return environment;
  const { SVC_LISTEN_ADDR: _ignored, ...rest } = environment;
  const isGiven = rest['SVC_BASE_URL'] !== undefined || rpId === undefined;
  return isGiven ? rest : { ...rest, SVC_BASE_URL: `https://${rpId}` };
}

/** Lists every key in AWS KMS that a variable names. */
export function kmsKeysOf(environment: Environment): KmsKeySetting[] {
  return [...VARIABLES.values()].flatMap(({ name, shape, kmsUse: use }) => {
    if (use === undefined) return [];
    const ids = [shape.safeParse(environment[name]).data].flat();
    return ids.flatMap((keyId) =>
      typeof keyId === 'string' ? { variable: name, keyId, use } : [],
    );
  });
}

function missingOf(names: readonly string[], environment: Environment): string[] {
  const given = names.find((name) => environment[name] !== undefined);
  if (given === undefined) return [];
  const missing = names.filter((name) => environment[name] === undefined);
  return missing.map((name) => `${name}: is required where ${given} is set`);
}

/** Reports that there is no upstream provider. Only certification test mode needs none. */
function missingProvider(environment: Environment): string[] {
  const slugs = TABLE.upstream.slugs.shape.safeParse(environment['SVC_IDPS']).data;
  if (slugs?.length !== 0 || environment['SVC_CERTIFICATION_TEST_TOKEN'] !== undefined) return [];
  return ['SVC_IDPS: at least one upstream identity provider is required'];
}

/** Returns the public origin; undefined for a malformed one, which is a problem of its row. */
function baseUrlOf(environment: Environment): URL | undefined {
  const { data } = TABLE.http.baseUrl.shape.safeParse(environment['SVC_BASE_URL']);
  return data === undefined ? undefined : new URL(data);
}

/** Checks the public origin and the relying party against each other. */
function originProblems(environment: Environment): string[] {
  const baseUrl = baseUrlOf(environment);
  if (baseUrl === undefined) return [];
  const { protocol, hostname } = baseUrl;
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

/** Checks certificate, key and public origin against each other. */
function tlsProblems(environment: Environment): string[] {
  const { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_BASE_URL: baseUrl } = environment;
  if (cert === undefined || key === undefined) return [];
  const problems: string[] = [];
  if (baseUrl === undefined) problems.push('SVC_BASE_URL: is required with TLS, or else SVC_RP_ID');
  else if (baseUrl.startsWith('http:')) problems.push('SVC_BASE_URL: must be https with TLS');
  if (!holdsCertificates(cert) || !holdsPrivateKey(key)) return problems;
  try {
    readTlsMaterial({ cert, key });
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  return problems;
}

/** Reports certification test mode, which bypasses logins, on a host that was not named for it. */
function certificationProblems(environment: Environment): string[] {
  const hostname = baseUrlOf(environment)?.hostname;
  if (environment['SVC_CERTIFICATION_TEST_TOKEN'] === undefined || hostname === undefined)
    return [];
  const meant = environment['SVC_CERTIFICATION_HOST']?.toLowerCase();
  if (isLoopbackHost(hostname) || hostname === meant) return [];
  return [
    'SVC_CERTIFICATION_TEST_TOKEN: certification test mode starts on loopback alone, or where SVC_CERTIFICATION_HOST ' +
      'names the host of SVC_BASE_URL',
  ];
}

/** Checks that there is one root secret, and at most one previous one: a text, or a key in KMS. */
function rootSecretProblems(environment: Environment): string[] {
  const isSet = (name: string) => environment[name] !== undefined;
  const isMissing = !isSet('SVC_JWT_SECRET') && !isSet('SVC_JWT_HMAC_KMS_KEY_ID');
  const twice = ['', '_PREVIOUS'].flatMap((previous) => {
    const [text, key] = [`SVC_JWT_SECRET${previous}`, `SVC_JWT_HMAC_KMS_KEY_ID${previous}`];
    return isSet(text) && isSet(key)
      ? `${text}: must not be set beside ${key}; keep the one that is the secret`
      : [];
  });
  return [...(isMissing ? ['SVC_JWT_SECRET: is required'] : []), ...twice];
}

/** Checks the address of KMS if a key is configured: it must be https, loopback apart. */
function kmsProblems(environment: Environment): string[] {
  const endpoints = [TABLE.kms.endpoint.name, TABLE.kms.anyEndpoint.name];
  const name = endpoints.find((one) => environment[one] !== undefined);
  const hasKey = [...VARIABLES.values()].some(
    (row) => row.kmsUse !== undefined && environment[row.name] !== undefined,
  );
  if (name === undefined || !hasKey || isHttpsOrLoopback(environment[name] ?? '')) return [];
  return [`${name}: must be https (http only for localhost)`];
}

/** Checks that PEM keys begin with a private one, unless a key in KMS signs. */
function signingKeyProblems(environment: Environment): string[] {
  return (['ec', 'rsa'] as const).flatMap((kind) => {
    const { name, shape } = TABLE.oidc.signingKeys[kind];
    const [first] = shape.safeParse(environment[name]).data ?? [];
    const isOutside = environment[TABLE.oidc.signingKmsKeyIds[kind].name] !== undefined;
    const isSigning = first === undefined || isPrivate(first) || isOutside;
    return isSigning ? [] : `${name}: ${SIGNING_KEY_PROBLEMS[kind]}`;
  });
}

/** Lists warnings about valid settings that are probably a mistake. */
export function warningsOf(environment: Environment, config: ValidConfig): string[] {
  const { root } = config.secrets;
  const { baseUrl, tls, trustedProxies } = config.http;
  const isBehindProxy = baseUrl.startsWith('https:') && tls === undefined;
  const { principals, principalsDomain } = config.ssh;
  const database = parseDatabaseUrl(config.database.url ?? '');
  const found: readonly (readonly [boolean, string])[] = [
    [
      root !== undefined && new Set(Buffer.from(root)).size < 8,
      'SVC_JWT_SECRET: has fewer than 8 distinct bytes',
    ],
    [
      isBehindProxy && trustedProxies.length === 0,
      'SVC_TRUSTED_PROXIES: is empty although a proxy ends TLS; all clients share one address',
    ],
    [
      config.relyingParty.id !== new URL(baseUrl).hostname,
      'SVC_RP_ID: is not the host of SVC_BASE_URL; every page under that domain can ask for touches of the same keys',
    ],
    [
      principalsDomain !== undefined && !principals.has('username'),
      'SVC_SSH_PRINCIPALS_DOMAIN: has no effect without username in SVC_SSH_PRINCIPALS',
    ],
    [
      database !== undefined && database.hosts.length > 1 && database.target === undefined,
      `SVC_DATABASE_URL: names several hosts and may reach a standby, which takes no writes; add target_session_attrs=read-write (${DATABASE_PAGE})`,
    ],
  ];
  const without = NEEDS.flatMap(([pattern, needed, named = needed]) =>
    environment[needed] === undefined
      ? Object.keys(environment)
          .filter((name) => pattern.test(name) && VARIABLES.has(name))
          .map((name) => `${name}: has no effect without ${named}`)
      : [],
  );
  return [...found.flatMap(([isSo, line]) => (isSo ? line : [])), ...without];
}
