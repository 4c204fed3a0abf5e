import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { startBrowser } from '../../support/browser.js';
import type { Client } from '../../support/client.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';
import { expectBrowserJourney } from '../../support/saml/browser-journey.js';
import { startNodeSamlProvider, type NodeSamlProvider } from '../../support/saml/node-provider.js';
import { expectWholeWay, metadataOf, samlEnvironment } from '../../support/saml/saml-app.js';
import {
  beginSamlSignIn,
  comeBack,
  postToAcs,
  readForm,
  type AcsForm,
  type Landed,
} from '../../support/saml/saml-browser.js';
import { NAME_ID } from '../../support/saml/saml-names.js';

/** Begins a sign-in at a provider. Returns the form that the page of the provider posts back. */
async function visit(client: Client, slug: string): Promise<AcsForm> {
  const { url } = await beginSamlSignIn(client, slug);
  const page = await client.follow(url.href);
  const { action, form } = readForm(page.text);
  if (action !== `${client.baseUrl}/saml/acs`) throw new Error(`no form: ${page.text}`);
  return form;
}

const signIn = async (client: Client, slug: string): Promise<Landed> =>
  comeBack(client, await visit(client, slug));

describe('a sign-in through a SAML provider on Node', () => {
  let node: NodeSamlProvider;
  let persistent: NodeSamlProvider;
  let app: TestApp;
  beforeAll(async () => {
    node = await startNodeSamlProvider();
    persistent = await startNodeSamlProvider({
      wantsSignedRequests: true,
      nameIdFormat: NAME_ID.persistent,
    });
    app = await startTestApp({
      environment: samlEnvironment({
        node: { metadataUrl: node.metadataUrl, settings: { NAME: 'the Node provider' } },
        'per-id': { metadataUrl: persistent.metadataUrl, settings: { EMAIL_ATTRIBUTE: 'mail' } },
      }),
    });
    node.trust(await metadataOf(app, 'node'));
    persistent.trust(await metadataOf(app, 'per-id'));
  });
  afterAll(async () => {
    await app.close();
    await node.close();
    await persistent.close();
  });

  it('leads a user to a key, and the key and the provider sign the same user in again', async () => {
    node.user = { email: 'Ada@Node.example' };
    await expectWholeWay(app, { email: 'ada@node.example', issuer: node.entityId }, (client) =>
      signIn(client, 'node'),
    );
  });

  it('binds a persistent NameID, so that a new address in the domain is the same user', async () => {
    persistent.user = { email: 'maiden@per.example', nameId: 'f3a1-0001' };
    await expectWholeWay(
      app,
      { email: 'maiden@per.example', issuer: persistent.entityId },
      (client) => signIn(client, 'per-id'),
    );
    persistent.user = { email: 'married@per.example', nameId: 'f3a1-0001' };
    expect((await signIn(app.client(), 'per-id')).url.pathname).toBe('/login');
    expect(await count(app.dataSource, "users WHERE email LIKE '%@per.example'")).toBe(1);
    expect(await count(app.dataSource, "users WHERE email = 'married@per.example'")).toBe(1);
  });

  it('signs the request when the metadata asks for it, and only then', async () => {
    persistent.user = { email: 'signed@per.example', nameId: 'f3a1-0002' };
    expect((await signIn(app.client(), 'per-id')).status).toBe(200);
    expect(persistent.requests.at(-1)?.get('SigAlg')).toMatch(/rsa-sha256$/);
    await signIn(app.client(), 'node');
    expect(node.requests.at(-1)?.has('Signature')).toBe(false);
  });

  it('names the provider, the address of the response and a RelayState of 80 bytes at most', async () => {
    const asked = await beginSamlSignIn(app.client(), 'node');
    expect(asked.url.origin).toBe(node.origin);
    expect(asked.acsUrl).toBe(`${app.baseUrl}/saml/acs`);
    expect(asked.audience).toBe(`${app.baseUrl}/saml/metadata`);
    expect(asked.request).toContain(`Destination="${node.origin}/sso"`);
    expect(asked.requestId).toMatch(/^[A-Za-z_][\w.-]{20,}$/);
    expect(Buffer.byteLength(asked.relayState)).toBeLessThanOrEqual(80);
  });

  it('shows every provider in the configured order, and lets the form go to its origin', async () => {
    const { text, headers } = await app.client().get('/login');
    const places = ['the demo provider', 'the Node provider', 'per-id'].map((name) =>
      text.indexOf(name),
    );
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    const policy = headers.get('content-security-policy') ?? '';
    const formAction = /form-action ([^;]*)/.exec(policy)?.[1]?.split(' ');
    expect(formAction).toContain(node.origin);
    expect(formAction).toContain(persistent.origin);
  });

  it('sets no session in the answer to the cross-site POST, and ends in the browser that began', async () => {
    node.user = { email: 'cookie@node.example' };
    const client = app.client();
    const form = await visit(client, 'node');
    const posted = await postToAcs(client, form, node.origin);
    expect(posted.status).toBe(303);
    expect(posted.headers.getSetCookie().join()).not.toMatch(/svc_session=[^;]/);
    const location = new URL(posted.headers.get('location') ?? '', app.baseUrl);
    expect(location.origin).toBe(app.baseUrl);
    const thief = app.client();
    await thief.get('/login?provider=node');
    expect((await thief.follow(location.href)).status).toBe(400);
    expect(thief.cookie('svc_session')).toBeUndefined();
  });

  it('goes on without a restart when the provider replaces its key', async () => {
    node.user = { email: 'rotated@node.example' };
    node.rotateKey();
    const landed = await signIn(app.client(), 'node');
    expect([landed.status, landed.url.pathname]).toEqual([200, '/enroll']);
  });

  it('is audited with the provider and its entity id', async () => {
    node.user = { email: 'audit@node.example' };
    await signIn(app.client(), 'node');
    const found = await rows(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'upstream_login' AND details->>'email' = $1",
      ['audit@node.example'],
    );
    expect(found).toEqual([
      { details: { provider: 'node', issuer: node.entityId, email: 'audit@node.example' } },
    ]);
  });

  it('refuses a form of more than 64 KiB', async () => {
    const { relayState } = await beginSamlSignIn(app.client(), 'node');
    const answer = await postToAcs(app.client(), {
      samlResponse: 'A'.repeat(64 * 1024),
      relayState,
    });
    expect(answer.status).toBe(413);
    expect(answer.headers.get('content-type')).toContain('text/html');
  });
});

requires('chromium').describe('a sign-in through a SAML provider on Node, in Chromium', () => {
  let node: NodeSamlProvider;
  let app: TestApp;
  let browser: Browser;
  beforeAll(async () => {
    node = await startNodeSamlProvider();
    app = await startTestApp({
      environment: samlEnvironment({ node: { metadataUrl: node.metadataUrl } }),
    });
    node.trust(await metadataOf(app, 'node'));
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await node.close();
  });

  it('crosses two sites with Lax cookies: enrolls, logs out, logs in by the provider and the key', async () => {
    const errors = await expectBrowserJourney(app, browser, 'node', async () => undefined);
    expect(errors).toEqual([]);
  });
});
