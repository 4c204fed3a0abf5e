import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** Where a certificate chain and its key come from, each as its variable has it: PEM, base64 of PEM, or a file's path. */
export interface TlsSource {
  readonly cert: string;
  readonly key: string;
}

/** A certificate chain and its key, PEM, which belong together and which OpenSSL takes. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** The server's own certificate: the first of the chain. */
  readonly leaf: X509Certificate;
}

/**
 * Reads both anew, and checks them: what comes back can be served with.
 *
 * @throws Error, one line that names the variable and never its value
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

/** Whether a source can be read, and its first PEM block is a certificate. */
export function holdsCertificates(source: string): boolean {
  return succeeds(() => new X509Certificate(readPem(source)));
}

/** Whether a source can be read, and is a private key without a passphrase. */
export function holdsPrivateKey(source: string): boolean {
  return succeeds(() => createPrivateKey(readPem(source)));
}

/**
 * The PEM text of a source: itself, what it is the base64 of, or what is in the file it names.
 *
 * @throws the system's error when there is no such file
 */
export function readPem(source: string): string {
  if (source.includes(PEM)) return source;
  const decoded = Buffer.from(source, 'base64').toString('latin1');
  return decoded.includes(PEM) ? decoded : readFileSync(source, 'utf8');
}
const PEM = '-----BEGIN ';

function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

/** The reason is the error's code: its message may quote what was set. */
function explain<T>(what: string, attempt: () => T): T {
  try {
    return attempt();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    throw new Error(`${what}${code}`, { cause });
  }
}
