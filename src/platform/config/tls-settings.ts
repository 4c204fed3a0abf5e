import {
  holdsCertificates,
  holdsPrivateKey,
  readTlsMaterial,
  type TlsSource,
} from '#platform/tls/tls-material.js';
import type { Environment } from './environment.js';

/**
 * Derives settings from TLS. If the service itself ends TLS, the default public origin is that of the relying party, and
 * SVC_LISTEN_ADDR is ignored.
 */
export function withTlsOrigin(environment: Environment): Environment {
  if (!tlsSource(environment)) return environment;
  const { SVC_LISTEN_ADDR: _ignored, ...rest } = environment;
  const { SVC_BASE_URL: baseUrl, SVC_RP_ID: rpId } = rest;
  return baseUrl !== undefined || rpId === undefined
    ? rest
    : { ...rest, SVC_BASE_URL: `https://${rpId}` };
}

/** Returns the sources of certificate and key; undefined without TLS. */
export function tlsSource({
  SVC_TLS_CERT: cert,
  SVC_TLS_KEY: key,
}: Environment): TlsSource | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

/** Checks certificate, key and public origin against each other. */
export function tlsProblems(environment: Environment): string[] {
  const { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_BASE_URL: baseUrl } = environment;
  if (cert === undefined && key === undefined) return [];
  if (key === undefined) return ['SVC_TLS_KEY: is required where SVC_TLS_CERT is set'];
  if (cert === undefined) return ['SVC_TLS_CERT: is required where SVC_TLS_KEY is set'];
  const problems: string[] = [];
  if (baseUrl === undefined) problems.push('SVC_BASE_URL: is required with TLS, or else SVC_RP_ID');
  else if (baseUrl.startsWith('http:')) problems.push('SVC_BASE_URL: must be https with TLS');
  if (holdsCertificates(cert) && holdsPrivateKey(key))
    problems.push(...pairProblems({ cert, key }));
  return problems;
}

/** Returns warnings about TLS settings without effect. */
export function tlsWarnings(environment: Environment): string[] {
  if (tlsSource(environment)) return [];
  return ['SVC_MTLS_PORT', 'SVC_MTLS_CLIENT_CA_CERTS']
    .filter((name) => environment[name] !== undefined)
    .map((name) => `${name}: has no effect without SVC_TLS_CERT and SVC_TLS_KEY`);
}

function pairProblems(source: TlsSource): string[] {
  try {
    readTlsMaterial(source);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
