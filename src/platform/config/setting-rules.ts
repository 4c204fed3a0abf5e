import { isIP } from 'node:net';
import { DATABASE_PAGE, parseDatabaseUrl } from '#platform/database/url/database-url.js';
import { isHttpsOrLoopback, isLoopbackHost } from '#platform/text/loopback.js';
import { isPrivate } from '#platform/tls/pem.js';
import { SIGNING_KEY_PROBLEMS } from '#platform/tls/pem-shapes.js';
import { holdsCertificates, holdsPrivateKey, readTlsMaterial } from '#platform/tls/tls-material.js';
import type { KmsKeySetting, ValidConfig } from './config.js';
import type { Environment } from './environment.js';
import { TABLE, VARIABLES } from './table/settings.js';
import { rowsOf, valueOf } from './table/variable.js';

/** Groups of variables. Either all variables of a group are set, or none. */
const TOGETHER = [
  rowsOf(TABLE.http.tls),
  [TABLE.database.pooler, TABLE.database.directUrl],
  rowsOf(TABLE.github).filter(({ name }) => !/_(?:API|WEB)_URL$/.test(name)),
].map((rows) => rows.map(({ name }) => name));

/** Patterns of variables, the variable that they need, and how a warning names that variable. */
const NEEDS = [
  [/^SVC_MTLS_/, 'SVC_TLS_CERT', 'SVC_TLS_CERT and SVC_TLS_KEY'],
  [/^SVC_CERTIFICATION_HOST$/, 'SVC_CERTIFICATION_TEST_TOKEN'],
  [/^SVC_S3_CONFIG_/, 'SVC_S3_CONFIG_BUCKET'],
  [/^SVC_AUDIT_SEAL_DAYS$/, 'SVC_AUDIT_SEAL_BUCKET'],
  [/^SVC_GITHUB_(?:API|WEB)_URL$/, 'SVC_GITHUB_APP_ID'],
  [/^SVC_DATABASE_POOLER$/, 'SVC_DATABASE_URL'],
] as const;

/** The rules between variables. Each rule yields a line for each problem. */
const RULES: readonly ((environment: Environment) => Iterable<string>)[] = [
  oneRootSecret,
  someProvider,
  matchingOrigin,
  matchingTls,
  together,
  certificationOnItsHost,
  safeKms,
  privateSigningKeys,
];

/** Lists the problems of combinations of settings. Other checks examine each setting alone. */
export function problemsOf(environment: Environment): string[] {
  return RULES.flatMap((rule) => [...rule(environment)]);
}

/**
 * Sets the default of SVC_BASE_URL to `https://{SVC_RP_ID}` if the service itself terminates TLS.
 * SVC_LISTEN_ADDR is then ignored, because the service listens on the ports 443 and 80.
 */
export function withTlsOrigin(environment: Environment): Environment {
  const { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_RP_ID: rpId } = environment;
  if (cert === undefined || key === undefined) return environment;
  const { SVC_LISTEN_ADDR: _ignored, ...rest } = environment;
  const isGiven = rest['SVC_BASE_URL'] !== undefined || rpId === undefined;
  return isGiven ? rest : { ...rest, SVC_BASE_URL: `https://${rpId}` };
}

/** Lists every key in AWS KMS that a set variable names. */
export function kmsKeysOf(environment: Environment): KmsKeySetting[] {
  return [...VARIABLES.values()].flatMap((row) => {
    const { name: variable, kmsUse: use } = row;
    const ids: unknown[] = use === undefined ? [] : [valueOf(row, environment)].flat();
    return ids.flatMap((keyId) =>
      use && typeof keyId === 'string' ? { variable, keyId, use } : [],
    );
  });
}

/** Checks that one root secret and at most one previous root secret are set, as text or KMS key. */
function* oneRootSecret(environment: Environment) {
  const isSet = (name: string) => environment[name] !== undefined;
  if (!isSet('SVC_JWT_SECRET') && !isSet('SVC_JWT_HMAC_KMS_KEY_ID')) {
    yield 'SVC_JWT_SECRET: is required';
  }
  for (const previous of ['', '_PREVIOUS']) {
    const [text, key] = [`SVC_JWT_SECRET${previous}`, `SVC_JWT_HMAC_KMS_KEY_ID${previous}`];
    if (isSet(text) && isSet(key)) {
      yield `${text}: must not be set beside ${key}; keep the one that is the secret`;
    }
  }
}

/** Checks that there is an upstream identity provider. Only certification test mode needs none. */
function* someProvider(environment: Environment) {
  const isMissing = valueOf(TABLE.upstream.slugs, environment)?.length === 0;
  if (isMissing && environment['SVC_CERTIFICATION_TEST_TOKEN'] === undefined) {
    yield 'SVC_IDPS: at least one upstream identity provider is required';
  }
}

/** Returns the public origin; undefined if it is malformed, which another check reports. */
function baseUrlOf(environment: Environment): URL | undefined {
  const value = valueOf(TABLE.http.baseUrl, environment);
  return value === undefined ? undefined : new URL(value);
}

/** Checks that the origin is https or loopback, and its host is SVC_RP_ID or a subdomain of it. */
function* matchingOrigin(environment: Environment) {
  const baseUrl = baseUrlOf(environment);
  if (baseUrl === undefined) return;
  const { protocol, hostname } = baseUrl;
  const rpId = environment['SVC_RP_ID']?.toLowerCase() ?? hostname;
  if (protocol === 'http:' && !isLoopbackHost(hostname)) {
    yield 'SVC_BASE_URL: must be https (http only for a loopback host)';
  }
  if (isIP(rpId.replace(/^\[|\]$/g, '')) !== 0) {
    yield 'SVC_RP_ID: an address cannot be a WebAuthn relying party id; use a host name in SVC_BASE_URL';
  } else if (rpId !== 'localhost' && !rpId.includes('.')) {
    yield 'SVC_RP_ID: must be localhost or a domain name of two labels or more';
  } else if (hostname !== rpId && !hostname.endsWith(`.${rpId}`)) {
    yield 'SVC_RP_ID: must be the host of SVC_BASE_URL or a parent domain of it';
  }
}

/** Checks that the TLS certificate, its private key and the public origin match each other. */
function* matchingTls(environment: Environment) {
  const { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_BASE_URL: baseUrl } = environment;
  if (cert === undefined || key === undefined) return;
  if (baseUrl === undefined) yield 'SVC_BASE_URL: is required with TLS, or else SVC_RP_ID';
  else if (baseUrl.startsWith('http:')) yield 'SVC_BASE_URL: must be https with TLS';
  if (!holdsCertificates(cert) || !holdsPrivateKey(key)) return;
  try {
    readTlsMaterial({ cert, key });
  } catch (error) {
    yield error instanceof Error ? error.message : String(error);
  }
}

function* together(environment: Environment) {
  for (const names of TOGETHER) {
    const given = names.find((name) => environment[name] !== undefined);
    for (const name of given === undefined ? [] : names) {
      if (environment[name] === undefined) yield `${name}: is required where ${given} is set`;
    }
  }
}

/** Allows certification test mode, without logins, only on loopback or SVC_CERTIFICATION_HOST. */
function* certificationOnItsHost(environment: Environment) {
  const hostname = baseUrlOf(environment)?.hostname;
  const { SVC_CERTIFICATION_TEST_TOKEN: token, SVC_CERTIFICATION_HOST: meant } = environment;
  if (token === undefined || hostname === undefined || isLoopbackHost(hostname)) return;
  if (hostname !== meant?.toLowerCase()) {
    yield 'SVC_CERTIFICATION_TEST_TOKEN: certification test mode starts on loopback alone, or where SVC_CERTIFICATION_HOST names the host of SVC_BASE_URL';
  }
}

/** Checks that the endpoint of KMS is https or loopback, if a key in KMS is configured. */
function* safeKms(environment: Environment) {
  const isSet = ({ name }: { readonly name: string }) => environment[name] !== undefined;
  const endpoint = Object.values(TABLE.kms).find(isSet);
  const hasKey = [...VARIABLES.values()].some((row) => row.kmsUse !== undefined && isSet(row));
  if (endpoint && hasKey && !isHttpsOrLoopback(environment[endpoint.name] ?? '')) {
    yield `${endpoint.name}: must be https (http only for localhost)`;
  }
}

/** Checks that the first signing key of a type is private, or public if a key in KMS signs. */
function* privateSigningKeys(environment: Environment) {
  for (const kind of ['ec', 'rsa'] as const) {
    const row = TABLE.oidc.signingKeys[kind];
    const [first] = valueOf(row, environment) ?? [];
    const isOutside = environment[TABLE.oidc.signingKmsKeyIds[kind].name] !== undefined;
    if (first !== undefined && !isPrivate(first) && !isOutside) {
      yield `${row.name}: ${SIGNING_KEY_PROBLEMS[kind]}`;
    }
  }
}

/** Yields warnings about valid settings that are probably a mistake. */
export function* warningsOf(environment: Environment, config: ValidConfig): Generator<string> {
  const { baseUrl, tls, trustedProxies } = config.http;
  const { root } = config.secrets;
  if (root !== undefined && new Set(Buffer.from(root)).size < 8) {
    yield 'SVC_JWT_SECRET: has fewer than 8 distinct bytes';
  }
  if (baseUrl.startsWith('https:') && tls === undefined && trustedProxies.length === 0) {
    yield 'SVC_TRUSTED_PROXIES: is empty although a proxy ends TLS; all clients share one address';
  }
  if (config.relyingParty.id !== new URL(baseUrl).hostname) {
    yield 'SVC_RP_ID: is not the host of SVC_BASE_URL; every page under that domain can ask for touches of the same keys';
  }
  const { principals, principalsDomain } = config.ssh;
  if (principalsDomain !== undefined && !principals.has('username')) {
    yield 'SVC_SSH_PRINCIPALS_DOMAIN: has no effect without username in SVC_SSH_PRINCIPALS';
  }
  const database = parseDatabaseUrl(config.database.url ?? '');
  if (database !== undefined && database.hosts.length > 1 && database.target === undefined) {
    yield `SVC_DATABASE_URL: names several hosts and may reach a standby, which takes no writes; add target_session_attrs=read-write (${DATABASE_PAGE})`;
  }
  for (const [pattern, needed, named = needed] of NEEDS) {
    if (environment[needed] !== undefined) continue;
    const idle = Object.keys(environment).filter(
      (name) => pattern.test(name) && VARIABLES.has(name),
    );
    for (const name of idle) yield `${name}: has no effect without ${named}`;
  }
}
