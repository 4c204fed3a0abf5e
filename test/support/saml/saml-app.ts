import { expect } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import type { TestApp } from '../app.js';
import type { Client } from '../client.js';
import { count, rows } from '../rows.js';
import { textOf, type Landed } from './saml-browser.js';

/**
 * The settings of a SAML provider: the URL of its metadata, and further environment variables
 * without their prefix (`SVC_IDP_…_`).
 */
export interface SamlSettings {
  readonly metadataUrl: string;
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * Returns the environment variables that configure SAML providers, which are given by their slugs.
 * The tests' OpenID provider `demo` stays the first provider.
 */
export function samlEnvironment(
  providers: Readonly<Record<string, SamlSettings>>,
): Record<string, string> {
  const variables: Record<string, string> = {
    SVC_IDPS: ['demo', ...Object.keys(providers)].join(','),
  };
  for (const [slug, { metadataUrl, settings = {} }] of Object.entries(providers)) {
    const prefix = `SVC_IDP_${slug.toUpperCase().replaceAll('-', '_')}_`;
    variables[`${prefix}TYPE`] = 'saml';
    variables[`${prefix}METADATA_URL`] = metadataUrl;
    for (const [name, value] of Object.entries(settings)) variables[prefix + name] = value;
  }
  return variables;
}

/** Returns the SAML metadata that the service publishes for the provider with this slug. */
export async function metadataOf(app: Pick<TestApp, 'client'>, slug: string): Promise<string> {
  const { status, text } = await app.client().get(`/saml/metadata?provider=${slug}`);
  if (status !== 200) throw new Error(`no metadata: ${status} ${text}`);
  return text;
}

/**
 * Signs a user in and enrolls a key. Then logs in by the key, and after that by the provider and
 * the key. Every step must succeed. Returns the key.
 *
 * @param signIn leads the browser to the provider and back, and returns the last page
 */
export async function expectWholeWay(
  app: TestApp,
  user: { readonly email: string; readonly issuer: string },
  signIn: (client: Client) => Promise<Landed>,
): Promise<SoftwareKey> {
  const client = app.client();
  const key = app.newKey();
  const first = await signIn(client);
  expect([first.status, first.url.pathname, textOf(first)]).toEqual([
    200,
    '/enroll',
    expect.anything(),
  ]);
  expect((await client.get('/v1/keys')).status).toBe(403);
  expect((await client.enroll(key)).status).toBe(200);
  expect((await client.get('/v1/keys')).status).toBe(200);
  await logOut(client);

  expect((await client.logIn(key)).status).toBe(200);
  expect((await client.get('/v1/keys')).status).toBe(200);
  await logOut(client);

  const second = await signIn(client);
  expect([second.status, second.url.pathname, textOf(second)]).toEqual([
    200,
    '/login',
    expect.anything(),
  ]);
  expect((await client.get('/v1/keys')).status).toBe(403);
  expect((await client.logIn(key)).status).toBe(200);
  expect((await client.get('/v1/keys')).status).toBe(200);
  expect(await count(app.dataSource, 'users WHERE email = $1', [user.email])).toBe(1);
  expect(await issuersOf(app, user.email)).toEqual([user.issuer]);
  return key;
}

async function logOut(client: Client): Promise<void> {
  expect((await client.post('/logout')).status).toBe(303);
  expect((await client.get('/v1/keys')).status).toBe(401);
}

async function issuersOf(app: Pick<TestApp, 'dataSource'>, email: string): Promise<string[]> {
  const found = await rows<{ issuer: string }>(
    app.dataSource,
    'SELECT i.issuer FROM identities i JOIN users u ON u.id = i.user_id WHERE u.email = $1',
    [email],
  );
  return found.map(({ issuer }) => issuer);
}
