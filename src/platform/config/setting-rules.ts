import { DATABASE_PAGE, parseDatabaseUrl } from '#platform/config/shapes/database-url.js';
import { isIP } from 'node:net';
import { isLoopbackHost } from '#platform/text/loopback.js';
import type { ValidConfig } from './config.js';
import { ENVIRONMENT, type Environment } from './environment.js';
import { tlsWarnings } from './tls-settings.js';

/** Reports that no upstream provider is configured. Only certification test mode needs none. */
export function missingProvider(environment: Environment): string[] {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  const isMissing = slugs.success && slugs.data.length === 0;
  if (!isMissing || environment['SVC_CERTIFICATION_TEST_TOKEN'] !== undefined) return [];
  return ['SVC_IDPS: at least one upstream identity provider is required'];
}

/** Checks the public origin and the relying party against each other, if the origin itself is valid. */
export function originProblems(environment: Environment): string[] {
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

/** Reports certification test mode on a public host that SVC_CERTIFICATION_HOST does not name, since the mode bypasses logins. */
export function certificationProblems(environment: Environment): string[] {
  if (environment['SVC_CERTIFICATION_TEST_TOKEN'] === undefined) return [];
  const baseUrl = ENVIRONMENT.shape.SVC_BASE_URL.safeParse(environment['SVC_BASE_URL']);
  if (!baseUrl.success) return []; // the schema reports this problem
  const { hostname } = new URL(baseUrl.data);
  const meant = environment['SVC_CERTIFICATION_HOST']?.toLowerCase();
  if (isLoopbackHost(hostname) || hostname === meant) return [];
  return [
    'SVC_CERTIFICATION_TEST_TOKEN: certification test mode starts on loopback alone, or where SVC_CERTIFICATION_HOST ' +
      'names the host of SVC_BASE_URL',
  ];
}

/** Returns warnings about valid settings that are probably a mistake. */
export function warningsOf(environment: Environment, config: ValidConfig): string[] {
  const warnings: string[] = [];
  const { root } = config.secrets;
  if (root !== undefined && new Set(Buffer.from(root)).size < 8) {
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
  if (config.ssh.principalsDomain !== undefined && !config.ssh.principals.has('username')) {
    warnings.push(
      'SVC_SSH_PRINCIPALS_DOMAIN: has no effect without username in SVC_SSH_PRINCIPALS',
    );
  }
  warnings.push(
    ...hostWarnings(config.database.url),
    ...tlsWarnings(environment),
    ...objectStoreWarnings(environment),
  );
  return warnings;
}

/** Warns of several hosts of which each may be used, as it is in libpq, because a standby takes no writes. */
function hostWarnings(url: string | undefined): string[] {
  const parsed = url === undefined ? undefined : parseDatabaseUrl(url);
  if (!parsed || parsed.hosts.length === 1 || parsed.target !== undefined) return [];
  return [
    `SVC_DATABASE_URL: names several hosts and may reach a standby, which takes no writes; add target_session_attrs=read-write (${DATABASE_PAGE})`,
  ];
}

/** Warns of settings of an object store where there is none. */
function objectStoreWarnings(environment: Environment): string[] {
  if (environment['SVC_S3_CONFIG_BUCKET'] !== undefined) return [];
  return Object.keys(environment)
    .filter((name) => name.startsWith('SVC_S3_CONFIG_') && name in ENVIRONMENT.shape)
    .map((name) => `${name}: has no effect without SVC_S3_CONFIG_BUCKET`);
}
