import { afterAll, beforeAll, expect, it, describe } from 'vitest';
import { claimLabel } from '../../../src/domain/organizations/issuers/organization-issuers.repository.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import {
  atLabel,
  awsToken,
  claimedBy,
  issuerOf,
  jwksAt,
  startDocumentKeyGround,
  type DocumentKeyGround,
} from '../../support/issuers.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';

const HOUR = 3_600_000;

requires('moto').describe('the issuer of an organization', () => {
  let ground: DocumentKeyGround;
  let app: TestApp;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    app = await startTestApp({ environment: ground.environment });
  });
  afterAll(async () => {
    await app.close();
    await ground.close();
  });

  /** The admin of an organization that has no label, and so no issuer of its own. */
  let labelless: Client;
  beforeAll(async () => {
    labelless = await newAdmin();
  });

  let organizations = 0;
  /** Enrolls the first user, and so the admin, of a new organization. Returns the client. */
  async function newAdmin(): Promise<Client> {
    organizations += 1;
    return (await app.enrolled(`ada@issuer-${organizations}.example`)).client;
  }
  const shown = async (browser: Client) => (await orgApi(browser, 'GET', '/issuer')).json.issuer;
  const claim = (browser: Client, body: unknown) => orgApi(browser, 'POST', '/issuer', body);
  const outcomeOf = ({ status, json }: { status: number; json?: { code?: string } }) => [
    status,
    json?.code,
  ];
  const eventsOf = (label: string) =>
    rows<{ type: string; class: string; actor_email: string; details: Record<string, unknown> }>(
      app.dataSource,
      `SELECT type, class, actor_email, details FROM audit_events WHERE details ->> 'label' = $1 ORDER BY id`,
      [label],
    );

  it('is none at first, and then a label with a key that signs, on record', async () => {
    const ada = await newAdmin();
    expect(await shown(ada)).toBeNull();
    const claimed = await claim(ada, { label: 'first-label' });
    expect(claimed.status).toBe(201);
    const key = {
      kid: expect.stringMatching(/^[\w-]{43}$/),
      state: 'signing',
      created_at: expect.any(String),
      signs_from: expect.any(String),
      published_until: null,
    };
    expect(claimed.json.issuer).toEqual({
      label: 'first-label',
      issuer: issuerOf(app, 'first-label'),
      active: false,
      claimed_at: expect.any(String),
      keys: [key],
    });
    expect(await shown(ada)).toEqual(claimed.json.issuer);
    const { keys } = await jwksAt(app, 'first-label');
    expect(keys).toEqual([
      { kty: 'RSA', n: expect.any(String), e: 'AQAB', kid: key.kid, use: 'sig', alg: 'RS256' },
    ]);
    expect(Buffer.from(String(keys[0]?.n), 'base64url')).toHaveLength(384);
    expect(await eventsOf('first-label')).toEqual([
      {
        type: 'org_issuer_claimed',
        class: 'admin',
        actor_email: expect.stringMatching(/^ada@/),
        details: { label: 'first-label', kid: keys[0]?.kid, active: false },
      },
    ]);
  });

  it.each([
    ['two characters', 'ab'],
    ['64 characters', 'a'.repeat(64)],
    ['a capital letter', 'Acme'],
    ['a hyphen at its start', '-acme'],
    ['a hyphen at its end', 'acme-'],
    ['a dot', 'acme.corp'],
    ['the form of an A-label', 'xn--acme'],
    ['a letter of another script', 'аcme'],
    ['a line break at its end', 'acme\n'],
    ['no text', 7],
  ])('is refused for a label with %s', async (_, label) => {
    expect(outcomeOf(await claim(labelless, { label }))).toEqual([400, 'invalid_request']);
  });

  it.each(['www', 'auth', 'login', 'svc', 'oauth', 'admin', 'static', 'status', 'mta-sts'])(
    'is refused for the reserved label %s',
    async (label) => {
      expect(outcomeOf(await claim(labelless, { label }))).toEqual([409, 'label_reserved']);
      expect(await shown(labelless)).toBeNull();
    },
  );

  it('of 20 organizations that claim one label at once, one gets it', async () => {
    const admins = await Promise.all(Array.from({ length: 20 }, newAdmin));
    const answers = await Promise.all(admins.map((ada) => claim(ada, { label: 'contended' })));
    const outcomes = answers.map((answer) => outcomeOf(answer).join(' ')).toSorted();
    expect(outcomes).toEqual(['201 ', ...Array.from({ length: 19 }, () => '409 label_taken')]);
    expect(await eventsOf('contended')).toHaveLength(1);
    expect(await count(app.dataSource, "organization_issuer_keys WHERE label = 'contended'")).toBe(
      1,
    );
  });

  it('of 20 statements that claim one label at the same moment, one succeeds', async () => {
    const made = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO organizations (id, name) SELECT gen_random_uuid(), 'race' FROM generate_series(1, 20) RETURNING id`,
    );
    const claims = await Promise.all(
      made.map(({ id }) => claimLabel(app.dataSource.manager, id, 'same-moment', false)),
    );
    expect(claims.filter((isClaimed) => isClaimed)).toHaveLength(1);
  });

  it('of 20 labels that one organization claims at once, it gets one', async () => {
    const ada = await newAdmin();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => claim(ada, { label: `many-${n}` })),
    );
    const outcomes = answers.map((answer) => outcomeOf(answer).join(' ')).toSorted();
    expect(outcomes).toEqual(['201 ', ...Array.from({ length: 19 }, () => '409 issuer_exists')]);
    expect(await count(app.dataSource, "organization_issuers WHERE label LIKE 'many-%'")).toBe(1);
  });

  it('has a label that no other organization gets, not even after its release', async () => {
    const [ada, eve] = [await newAdmin(), await newAdmin()];
    await claim(ada, { label: 'kept-for-ada' });
    const refused = await claim(eve, { label: 'kept-for-ada' });
    expect(outcomeOf(refused)).toEqual([409, 'label_taken']);
    expect(refused.text).not.toContain('issuer-');
    expect((await orgApi(ada, 'DELETE', '/issuer')).status).toBe(204);
    expect(await shown(ada)).toBeNull();
    expect(outcomeOf(await claim(eve, { label: 'kept-for-ada' }))).toEqual([409, 'label_taken']);
    expect((await atLabel(app, 'kept-for-ada', 'GET /oauth/jwks')).status).toBe(421);
    const before = await count(
      app.dataSource,
      "organization_issuer_keys WHERE label = 'kept-for-ada'",
    );
    expect(before).toBe(0);
    expect((await claim(ada, { label: 'kept-for-ada' })).status).toBe(201);
    expect((await eventsOf('kept-for-ada')).map(({ type }) => type)).toEqual([
      'org_issuer_claimed',
      'org_issuer_released',
      'org_issuer_claimed',
    ]);
  });

  it('has at most three labels over time', async () => {
    const ada = await newAdmin();
    for (const label of ['over-time-1', 'over-time-2', 'over-time-3']) {
      expect((await claim(ada, { label })).status).toBe(201);
      await orgApi(ada, 'DELETE', '/issuer');
    }
    expect(outcomeOf(await claim(ada, { label: 'over-time-4' }))).toEqual([409, 'limit_reached']);
    expect((await claim(ada, { label: 'over-time-2' })).status).toBe(201);
  });

  it('signs the tokens for AWS from its activation to its deactivation, and no other tokens', async () => {
    const { client: ada } = await claimedBy(app, 'ada@steps.example', { label: 'in-steps' });
    const issuerNow = async () =>
      JSON.parse(atob((await awsToken(ada)).split('.')[1] ?? '')).iss as string;
    expect(await issuerNow()).toBe(app.baseUrl);
    const activate = (active: boolean) => orgApi(ada, 'PATCH', '/issuer', { active });
    expect((await activate(true)).json.issuer).toMatchObject({ active: true });
    await activate(true); // the issuer is active already: this is no change, and no event
    expect(await issuerNow()).toBe(issuerOf(app, 'in-steps'));
    expect((await activate(false)).json.issuer).toMatchObject({ active: false });
    expect(await issuerNow()).toBe(app.baseUrl);
    await activate(true);
    await orgApi(ada, 'DELETE', '/issuer');
    expect(await issuerNow()).toBe(app.baseUrl);
    expect((await eventsOf('in-steps')).map(({ type }) => type)).toEqual([
      'org_issuer_claimed',
      'org_issuer_activated',
      'org_issuer_deactivated',
      'org_issuer_activated',
      'org_issuer_released',
    ]);
  });

  it('publishes the next key a day before it signs, and the last one for an hour after', async () => {
    const { client: ada } = await claimedBy(app, 'ada@planned.example', { label: 'planned' });
    const [first] = (await shown(ada)).keys;
    const empty = { 'content-type': 'application/json', 'content-length': '0' };
    const rotated = await orgApi(ada, 'POST', '/issuer/rotate', undefined, empty);
    const [next, signing] = rotated.json.issuer.keys;
    expect([next.state, signing.state, signing.kid]).toEqual(['next', 'signing', first.kid]);
    const hours = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / HOUR;
    expect(hours(next.created_at, next.signs_from)).toBe(24);
    expect(hours(next.signs_from, signing.published_until)).toBe(1);
    expect(outcomeOf(await orgApi(ada, 'POST', '/issuer/rotate', {}))).toEqual([
      409,
      'rotation_pending',
    ]);
    expect((await eventsOf('planned')).at(-1)).toMatchObject({
      type: 'org_issuer_key_rotated',
      details: { kid: next.kid, emergency: false, withdrawn: [] },
    });
  });

  it('withdraws every key in an emergency, the next one too', async () => {
    const { client: ada } = await claimedBy(app, 'ada@emergency.example', { label: 'emergency' });
    const { keys } = (await orgApi(ada, 'POST', '/issuer/rotate', {})).json.issuer;
    const after = await orgApi(ada, 'POST', '/issuer/rotate', { emergency: true });
    const [only, ...others] = after.json.issuer.keys;
    expect([only.state, others]).toEqual(['signing', []]);
    expect((await jwksAt(app, 'emergency')).keys.map(({ kid }) => kid)).toEqual([only.kid]);
    const old = keys.map(({ kid }: { kid: string }) => kid).toSorted();
    expect(old).not.toContain(only.kid);
    expect((await eventsOf('emergency')).at(-1)).toMatchObject({
      details: { kid: only.kid, emergency: true, withdrawn: old },
    });
    const [row] = await rows(
      app.dataSource,
      'SELECT FROM organization_issuer_keys WHERE kid = ANY ($1)',
      [old],
    );
    expect(row).toBeUndefined();
  });

  it('is for admins of the organization alone, and a change needs a recent touch', async () => {
    const { client: ada } = await claimedBy(app, 'ada@roles.example', { label: 'the-roles' });
    const { client: bob } = await app.enrolled('bob@roles.example');
    for (const [method, path, body] of [
      ['GET', '/issuer', undefined],
      ['POST', '/issuer', { label: 'of-bob' }],
      ['PATCH', '/issuer', { active: true }],
      ['POST', '/issuer/rotate', { emergency: true }],
      ['DELETE', '/issuer', undefined],
    ] as const) {
      expect(outcomeOf(await orgApi(bob, method, path, body))).toEqual([403, 'admin_required']);
    }
    await rows(
      app.dataSource,
      "UPDATE sessions SET auth_time = auth_time - interval '301 seconds' WHERE user_id = $1",
      [await idOf(app, 'ada@roles.example')],
    );
    for (const [method, path, body] of [
      ['POST', '/issuer', { label: 'too-late' }],
      ['PATCH', '/issuer', { active: true }],
      ['POST', '/issuer/rotate', { emergency: true }],
      ['DELETE', '/issuer', undefined],
    ] as const) {
      expect(outcomeOf(await orgApi(ada, method, path, body))).toEqual([
        401,
        'insufficient_user_authentication',
      ]);
    }
    expect((await shown(ada)).label).toBe('the-roles');
  });

  it('is 404 to change, rotate or release where there is none', async () => {
    const ada = await newAdmin();
    for (const [method, path, body] of [
      ['PATCH', '/issuer', { active: true }],
      ['POST', '/issuer/rotate', {}],
      ['DELETE', '/issuer', undefined],
    ] as const) {
      expect(outcomeOf(await orgApi(ada, method, path, body))).toEqual([404, 'not_found']);
    }
  });

  it('loses its keys with its organization, and its label stays reserved', async () => {
    await claimedBy(app, 'ada@gone.example', { label: 'gone-org' });
    const [org] = await rows<{ org_id: string }>(
      app.dataSource,
      "SELECT org_id FROM organization_issuers WHERE label = 'gone-org'",
    );
    await app.dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM users WHERE org_id = $1', [org?.org_id]);
      await tx.query('DELETE FROM organizations WHERE id = $1', [org?.org_id]);
    });
    expect(await count(app.dataSource, "organization_issuer_keys WHERE label = 'gone-org'")).toBe(
      0,
    );
    expect((await atLabel(app, 'gone-org', 'GET /oauth/jwks')).status).toBe(421);
    const eve = await newAdmin();
    expect(outcomeOf(await claim(eve, { label: 'gone-org' }))).toEqual([409, 'label_taken']);
  });
});

describe('an issuer without a document key', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('cannot be claimed: 503 says that the deployment is not configured', async () => {
    const { client: ada } = await app.enrolled('ada@unset.example');
    expect((await orgApi(ada, 'GET', '/issuer')).json).toEqual({ issuer: null });
    const refused = await orgApi(ada, 'POST', '/issuer', { label: 'never' });
    expect([refused.status, refused.json.code]).toEqual([503, 'issuers_not_configured']);
    expect(await count(app.dataSource, 'organization_issuers')).toBe(0);
  });
});
