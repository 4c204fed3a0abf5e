import { afterAll, beforeAll, expect } from 'vitest';
import { startTestApp, type TestApp } from '../app.js';
import type { Client } from '../client.js';
import { count, rows } from '../rows.js';
import type { Asked } from './forger.js';
import {
  startForgedProvider,
  type ForgedProvider,
  type ResponseChanges,
} from './forged-provider.js';
import { samlEnvironment } from './saml-app.js';
import {
  beginSamlSignIn,
  comeBack,
  encoded,
  textOf,
  type AcsForm,
  type Landed,
} from './saml-browser.js';

/** The e-mail address of the user whose account an attacker wants. */
export const VICTIM = 'admin@victim.example';
/** The e-mail address of the attacker's own account at the provider. */
export const MALLORY = 'mallory@forged.example';

/**
 * Makes the response to a SAML request. It returns XML, which is then encoded in base64, or the
 * complete value of the form field.
 */
export type Forge = (
  asked: Asked,
  provider: ForgedProvider,
) => string | Buffer | { readonly field: string };

/**
 * An attack by a forged SAML response. The tests first send an honest response without the attack,
 * which must be accepted. So only the attack can be the reason if the forged response is refused.
 */
export interface Attack {
  /**
   * Makes the response without the attack, which must sign the user in. By default it is {@link
   * honestly}.
   */
  readonly honest?: Forge;
  readonly forged: Forge;
  /**
   * Matches the reason of the refusal in the audit event or on the page. The test fails if the
   * service refuses the response for another reason.
   */
  readonly reason: RegExp;
  /** The SAML provider that sends the response; by default `corp`. */
  readonly slug?: 'corp' | 'attr';
}

/** The running service with two SAML providers, whose responses the tests make. */
export interface AttackSuite {
  readonly app: TestApp;
  /** The provider `corp`, which has the e-mail address in the NameID. */
  readonly corp: ForgedProvider;
  /** The provider `attr`, which has the e-mail address in the attribute `mail`. */
  readonly attr: ForgedProvider;
}

/**
 * Starts the service and its two providers for the tests of a file, and stops them after the tests.
 */
export function attackSuite(): AttackSuite {
  let app: TestApp;
  let corp: ForgedProvider;
  let attr: ForgedProvider;
  beforeAll(async () => {
    [corp, attr] = await Promise.all([startForgedProvider('corp'), startForgedProvider('attr')]);
    app = await startTestApp({
      environment: samlEnvironment({
        corp: { metadataUrl: corp.metadataUrl },
        attr: { metadataUrl: attr.metadataUrl, settings: { EMAIL_ATTRIBUTE: 'mail' } },
      }),
    });
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([corp.close(), attr.close()]);
  });

  return {
    get app() {
      return app;
    },
    get corp() {
      return corp;
    },
    get attr() {
      return attr;
    },
  };
}

/** Signs a user in by a response, in a new browser. Expects the page for enrolling a key. */
export async function expectAccepted(
  suite: AttackSuite,
  forge: Forge,
  email = MALLORY,
  slug: 'corp' | 'attr' = 'corp',
): Promise<void> {
  const client = suite.app.client();
  const page = await submit(suite, client, forge, slug);
  const landed = [page.status, page.url.pathname, textOf(page)];
  expect(landed).toEqual([200, '/enroll', expect.anything()]);
  expect(client.cookie('svc_session')).toBeDefined();
  expect(await lastSignedIn(suite.app)).toBe(email);
}

/**
 * Expects that the honest response signs the user in. Then expects that the service refuses the
 * forged response, and that nothing changes.
 */
export async function expectAttackRefused(
  suite: AttackSuite,
  { honest = honestly(), forged, reason, slug = 'corp' }: Attack,
): Promise<Landed> {
  await expectAccepted(suite, honest, MALLORY, slug);
  const client = suite.app.client();
  return expectRefused(suite, client, () => submit(suite, client, forged, slug), reason);
}

/**
 * Expects that the service refuses a posted response for a reason, and creates no session, user or
 * identity.
 */
export async function expectRefused(
  { app }: Pick<AttackSuite, 'app'>,
  client: Client,
  act: () => Promise<Landed>,
  reason: RegExp,
): Promise<Landed> {
  const before = await traces(app);
  const page = await act();
  const isClientError = expect.toSatisfy((status: number) => status >= 400 && status < 500);
  expect([page.status, textOf(page)]).toEqual([isClientError, expect.anything()]);
  expect(page.headers.get('content-type')).toContain('text/html');
  expect(client.cookie('svc_session')).toBeUndefined();
  const after = await traces(app);
  expect({ ...after, reasons: [] }).toEqual({ ...before, reasons: [] });
  expect([...after.reasons.slice(before.reasons.length), textOf(page)].join('\n')).toMatch(reason);
  expect((await client.post('/enroll/webauthn/start', {})).status).not.toBe(200);
  return page;
}

async function submit(
  suite: AttackSuite,
  client: Client,
  forge: Forge,
  slug: 'corp' | 'attr',
): Promise<Landed> {
  const asked = await beginSamlSignIn(client, slug);
  return comeBack(client, formOf(asked, forge(asked, suite[slug])));
}

/** Returns a {@link Forge} of a correct response for MALLORY, except for the given changes. */
export function honestly(changes: ResponseChanges = {}): Forge {
  return (asked, provider) => provider.respond(asked, { email: MALLORY, ...changes });
}

/** Returns the fields of the form in which a browser would post a response. */
export function formOf(asked: Asked, written: ReturnType<Forge>): AcsForm {
  const samlResponse =
    typeof written === 'string' || Buffer.isBuffer(written) ? encoded(written) : written.field;
  return { samlResponse, relayState: asked.relayState };
}

/**
 * Returns the numbers of rows that a sign-in would increase, and the reasons of all refusals so
 * far.
 */
async function traces({ dataSource }: Pick<TestApp, 'dataSource'>) {
  const refusals = await rows<{ reason: string }>(
    dataSource,
    `SELECT details->>'reason' AS reason FROM audit_events
     WHERE type = 'upstream_login_refused' ORDER BY id`,
  );
  return {
    users: await count(dataSource, 'users'),
    identities: await count(dataSource, 'identities'),
    sessions: await count(dataSource, 'sessions'),
    signIns: await count(dataSource, "audit_events WHERE type = 'upstream_login'"),
    reasons: refusals.map(({ reason }) => reason),
  };
}

async function lastSignedIn({ dataSource }: Pick<TestApp, 'dataSource'>) {
  const [row] = await rows<{ email: string }>(
    dataSource,
    `SELECT details->>'email' AS email FROM audit_events
     WHERE type = 'upstream_login' ORDER BY id DESC LIMIT 1`,
  );
  return row?.email;
}
