import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { readPem } from './pem.js';

/** The values of SVC_TLS_CERT and SVC_TLS_KEY. Each is PEM, base64 of PEM, or a file's path. */
export interface TlsSource {
  readonly cert: string;
  readonly key: string;
}

/** A certificate chain and its private key in PEM, after they were checked. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** The certificate of this server: the first of the chain. */
  readonly leaf: X509Certificate;
}

/**
 * Reads a certificate and its private key, and checks that they belong together.
 *
 * @throws Error with one line that has the variable's name and never its value
 */
export function readTlsMaterial(source: TlsSource): TlsMaterial {
  const cert = explain('SVC_TLS_CERT: cannot be read', () => readPem(source.cert));
  const key = explain('SVC_TLS_KEY: cannot be read', () => readPem(source.key));
  const leaf = explain('SVC_TLS_CERT: holds no certificate', () => new X509Certificate(cert));
  const privateKey = explain('SVC_TLS_KEY: holds no private key', () => createPrivateKey(key));
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error('SVC_TLS_KEY: is not the key of the first certificate in SVC_TLS_CERT');
  }
  explain('SVC_TLS_CERT: OpenSSL refuses it', () => createSecureContext({ cert, key }));
  return { cert, key, leaf };
}

/** Returns true if a value of SVC_TLS_CERT can be read and parsed as a certificate. */
export function holdsCertificates(source: string): boolean {
  return succeeds(() => new X509Certificate(readPem(source)));
}

/** Returns true if a value of SVC_TLS_KEY can be read and is a private key without a passphrase. */
export function holdsPrivateKey(source: string): boolean {
  return succeeds(() => createPrivateKey(readPem(source)));
}

function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a function, and replaces its error by a description with the code of the error. The message
 * of the error is dropped, because it may quote the value, which can be a private key.
 */
function explain<T>(what: string, attempt: () => T): T {
  try {
    return attempt();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    throw new Error(`${what}${code}`, { cause });
  }
}
