import { randomUUID } from 'node:crypto';
import { mintOpaqueToken } from '../../src/platform/crypto/opaque-token.js';
import { startTestApp, type TestApp, type TestAppOptions } from './app.js';
import { newAddress } from './client.js';
import { freePort } from './free-port.js';
import { sendSecurely, type SecureAnswer } from './https-client.js';
import { makeTlsAuthority, type TlsAuthority } from './tls-authority.js';

/**
 * A running application that ends TLS itself. It has a second TLS listener, which asks for client
 * certificates (mutual TLS).
 */
export interface SecureApp {
  readonly app: TestApp;
  readonly authority: TlsAuthority;
  readonly baseUrl: string;
  /** The URL of the mutual-TLS listener. */
  readonly mutualTlsUrl: string;
  /**
   * Posts a form to a path at the base URL of one of the listeners, from an unused client IP
   * address.
   */
  post(
    base: string,
    path: string,
    form: Readonly<Record<string, string>>,
    options?: {
      readonly cert?: string;
      readonly key?: string;
      readonly headers?: Record<string, string>;
    },
  ): Promise<SecureAnswer>;
  get(base: string, path: string, headers?: Record<string, string>): Promise<SecureAnswer>;
  /** Inserts a user with a logged-in session. Returns the session cookie. */
  loggedIn(email: string): Promise<string>;
}

/** Starts the application with its TLS listeners on free ports of loopback. */
export async function startSecureApp(
  environment: Readonly<Record<string, string>> = {},
  options: Pick<TestAppOptions, 'modules' | 'storeTimes'> = {},
): Promise<SecureApp> {
  const authority = makeTlsAuthority();
  const [https, http, mutualTls] = [await freePort(), await freePort(), await freePort()];
  const baseUrl = `https://localhost:${https}`;
  const app = await startTestApp({
    ...options,
    ports: { https, http },
    environment: {
      SVC_BASE_URL: baseUrl,
      SVC_TLS_CERT: authority.cert,
      SVC_TLS_KEY: authority.key,
      SVC_MTLS_PORT: String(mutualTls),
      ...environment,
    },
  });
  const tls = { ca: authority.ca };
  return {
    app,
    authority,
    baseUrl,
    mutualTlsUrl: `https://localhost:${mutualTls}`,
    post: (base, path, form, { headers, ...certificate } = {}) =>
      sendSecurely(base + path, {
        ...tls,
        ...certificate,
        method: 'POST',
        form,
        headers: { 'x-forwarded-for': newAddress(), ...headers },
      }),
    get: (base, path, headers = {}) =>
      sendSecurely(base + path, {
        ...tls,
        method: 'GET',
        headers: { 'x-forwarded-for': newAddress(), ...headers },
      }),
    loggedIn: (email) => insertVerifiedSession(app, email),
  };
}

/**
 * Inserts a user, a key and a hardware-verified session by SQL, because other tests cover the
 * enrollment. Returns the session cookie.
 */
export async function insertVerifiedSession(app: TestApp, email: string): Promise<string> {
  const { token, hash } = mintOpaqueToken();
  const [user, key] = [randomUUID(), randomUUID()];
  await app.dataSource.query('INSERT INTO users (id, email, name) VALUES ($1, $2, $3)', [
    user,
    email,
    'Somebody',
  ]);
  await app.dataSource.query(
    `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, user_verification, name)
     VALUES ($1, $2, $3, '', 0, 'packed', true, 'a key')`,
    [key, user, Buffer.from(key)],
  );
  await app.dataSource.query(
    `INSERT INTO sessions (id, token_hash, level, user_id, authenticator_id, amr, acr, auth_time, expires_at)
     VALUES ($1, $2, 'verified', $3, $4, '{hwk,pin,user}', 'urn:nist:authentication:assurance-level:aal3', now(),
             now() + interval '8 hours')`,
    [randomUUID(), hash, user, key],
  );
  return `svc_session=${token}`;
}
