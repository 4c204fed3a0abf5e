import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import { startTestApp, type EnrolledUser, type TestApp, type TestAppOptions } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { kmsAdmin, useMotoCredentials, type KmsAdmin } from './kms.js';
import { startMoto } from './moto.js';
import { orgApi } from './org-api.js';
import { rawExchange, requestBytes, type RawAnswer } from './raw-http.js';

/** A stand-in for AWS KMS that has a key for encrypting other keys. */
export interface DocumentKeyGround {
  readonly admin: KmsAdmin;
  /** The id of that key. */
  readonly keyId: string;
  /** The variables by which an application uses the stand-in and that key. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/**
 * Creates a key for encrypting other keys in moto, a stand-in for AWS. By default it is the moto of
 * this worker.
 */
export async function startDocumentKeyGround(start = startMoto): Promise<DocumentKeyGround> {
  const restore = useMotoCredentials();
  const moto = await start();
  const admin = await kmsAdmin(moto.endpoint);
  const keyId = await admin.create('SYMMETRIC_DEFAULT');
  return {
    admin,
    keyId,
    environment: {
      SVC_DOCUMENT_KEY_KMS_KEY_ID: keyId,
      AWS_ENDPOINT_URL_KMS: moto.endpoint,
    },
    async close() {
      await moto.close();
      restore();
    },
  };
}

/**
 * Starts a second replica of an application: with the same database and base URL, and another port.
 */
export function startReplicaOf(
  { baseUrl, config }: TestApp,
  port: number,
  options: TestAppOptions,
): Promise<TestApp> {
  return startTestApp({
    database: { url: config.database.url ?? '' },
    environment: {
      ...options.environment,
      SVC_BASE_URL: baseUrl,
      SVC_LISTEN_ADDR: `[::]:${port}`,
      SVC_JWT_SECRET: config.secrets.root,
      SVC_SSH_CA_KEY_PATH: config.ssh.caKeyPath,
    },
  });
}

/** Returns the URL at which a replica listens. */
export const listenerOf = (port: number) => `http://localhost:${port}`;

/**
 * Sends a request to the own host of an organization. Its name begins with the organization's
 * label. The request goes to the application, or to a replica as `listener`.
 */
export function atLabel(
  { baseUrl }: Pick<TestApp, 'baseUrl'>,
  label: string,
  line: string,
  { listener = baseUrl, headers = [] }: { listener?: string; headers?: readonly string[] } = {},
): Promise<RawAnswer> {
  const host = `Host: ${label}.${new URL(baseUrl).host}`;
  return rawExchange(listener, requestBytes(baseUrl, line, [host, ...headers]));
}

/** Returns the JWK Set that the own host of an organization serves. */
export async function jwksAt(
  app: Pick<TestApp, 'baseUrl'>,
  label: string,
  listener?: string,
): Promise<JSONWebKeySet> {
  const answer = await atLabel(app, label, 'GET /oauth/jwks', listener ? { listener } : {});
  if (answer.status !== 200) throw new Error(`${label}: ${answer.status} ${answer.body}`);
  return JSON.parse(answer.body) as JSONWebKeySet;
}

/** Returns the issuer of the organization with a label: the URL of its own host. */
export function issuerOf({ baseUrl }: Pick<TestApp, 'baseUrl'>, label: string): string {
  return `http://${label}.${new URL(baseUrl).host}`;
}

/**
 * Enrolls the first user of a domain, who becomes the admin of a new organization. As the admin,
 * claims a label for the organization's own host.
 */
export async function claimedBy(
  app: TestApp,
  email: string,
  body: { readonly label: string; readonly active?: boolean },
): Promise<EnrolledUser> {
  const user = await app.enrolled(email);
  const answer = await orgApi(user.client, 'POST', '/issuer', body);
  if (answer.status !== 201) throw new Error(`the claim failed: ${answer.text}`);
  return user;
}

/** Requests an ID token for AWS, from an unused client IP address. */
export function requestToken(browser: Client): Promise<Answer> {
  return browser.post('/v1/credentials/aws/token', {}, { address: newAddress() });
}

/** Requests an ID token for AWS, and returns it. Throws if the service refuses. */
export async function awsToken(browser: Client): Promise<string> {
  const answer = await requestToken(browser);
  if (answer.status !== 200) throw new Error(`no token: ${answer.text}`);
  return answer.json.id_token as string;
}

/**
 * Verifies an ID token as AWS does: by its issuer, the algorithm RS256 and a JWK Set. Returns the
 * claims. Throws if the token does not verify.
 */
export async function verified(token: string, issuer: string, jwks: JSONWebKeySet) {
  const options = { issuer, algorithms: ['RS256'] };
  return (await jwtVerify(token, createLocalJWKSet(jwks), options)).payload;
}

/**
 * Makes every name that ends in `.localhost` resolve like `localhost`, as browsers do. The returned
 * function undoes this.
 */
export function resolveNamesBelowLocalhost(): () => void {
  const original = dns.lookup;
  const lookup: LookupFunction = (name, options, callback) => {
    original(name.endsWith('.localhost') ? 'localhost' : name, options, callback);
  };
  Object.assign(dns, { lookup });
  return () => {
    Object.assign(dns, { lookup: original });
  };
}
