import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SoftwareKey, type CreateOptions } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { rows } from '../support/rows.js';

const ALLOWED = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118'; // YubiKey 5 Series with NFC
const EXCLUDED = '73bb0cd4-e502-49b8-9c6f-b59445bf720b'; // YubiKey 5 FIPS Series

interface Refusal {
  readonly code: string;
  readonly subject: boolean;
  readonly org_id: string | null;
  readonly request_id: string;
}

describe('a refused enrollment', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_ALLOWED_AAGUIDS: ALLOWED } });
  });
  afterAll(() => app.close());

  const newKey = (aaguid = ALLOWED) => app.newKey({ aaguid });
  const refusalsOf = (email: string) =>
    rows<Refusal>(
      app.dataSource,
      `SELECT details ->> 'code' AS code, subject_id IS NOT NULL AS subject, org_id, request_id
       FROM audit_events WHERE type = 'enrollment_refused' AND class = 'auth' AND details ->> 'email' = $1
       ORDER BY id`,
      [email],
    );
  const orgOf = async (email: string) => {
    const [user] = await rows<{ org_id: string | null }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [email],
    );
    return user?.org_id;
  };
  async function newcomer(email: string): Promise<Client> {
    const client = app.client();
    await client.signIn(email);
    return client;
  }
  const start = async (client: Client) =>
    (await client.post('/enroll/webauthn/start', {})).json as {
      state: string;
      publicKey: CreateOptions;
    };
  const reference = ({ headers }: Answer) => headers.get('x-fapi-interaction-id');

  it.each([
    ['of another make', () => new SoftwareKey({ aaguid: ALLOWED }), {}, 'attestation_rejected'],
    ['of another model', () => newKey(EXCLUDED), {}, 'model_not_allowed'],
    [
      'that checked no PIN',
      () => newKey(),
      { authenticatorSelection: { userVerification: 'discouraged' } },
      'user_verification_missing',
    ],
    ['over another challenge', () => newKey(), { challenge: 'AAAA' }, 'attestation_rejected'],
  ] as const)(
    '10.24 is an audit row with a reference number: a key %s',
    async (_, make, different, code) => {
      const email = `${crypto.randomUUID()}@refused.example`;
      const client = await newcomer(email);
      const { state, publicKey } = await start(client);
      const credential = make().create({ ...publicKey, ...different }, app.baseUrl);
      const answer = await client.post('/enroll/webauthn/complete', { state, credential });
      expect([answer.status, answer.json.code]).toEqual([400, code]);
      expect(await refusalsOf(email)).toEqual([
        { code, subject: false, org_id: null, request_id: reference(answer) },
      ]);
    },
  );

  it('10.24 names the excluded model, and the allowed ones', async () => {
    const client = await newcomer('named@refused.example');
    const { detail } = (await client.enroll(newKey(EXCLUDED))).json;
    expect(detail).toContain('YubiKey 5 FIPS Series');
    expect(detail).toContain('YubiKey 5 Series with NFC');
    const page = await client.get('/enroll');
    expect(page.text).toContain('YubiKey 5 Series with NFC');
  });

  it('10.24 does not happen to a U2F key, which cannot check a PIN, where all models are allowed', async () => {
    const free = await startTestApp();
    try {
      const client = free.client();
      await client.signIn('u2f@refused.example');
      expect((await client.enroll(free.newKey({ format: 'fido-u2f' }))).status).toBe(200);
    } finally {
      await free.close();
    }
  });

  it('10.24 is visible to the organization that the user tried to join, and to no other', async () => {
    const founder = newKey();
    const first = await newcomer('founder@joining.example');
    expect((await first.enroll(founder)).status).toBe(200);
    await (await newcomer('late@joining.example')).enroll(newKey(EXCLUDED));
    await (await newcomer('other@outside.example')).enroll(newKey(EXCLUDED));
    expect(await refusalsOf('late@joining.example')).toMatchObject([
      { org_id: await orgOf('founder@joining.example') },
    ]);
    const { text } = await first.get('/api/v1/org/audit-events?type=enrollment_refused');
    expect(text).toContain('late@joining.example');
    expect(text).not.toContain('other@outside.example');
  });

  it('10.24 is an audit row of the user, when a user with a key tries another one', async () => {
    await (await newcomer('has@refused.example')).enroll(newKey());
    const again = await newcomer('has@refused.example');
    const answer = await again.post('/enroll/webauthn/start', {});
    expect([answer.status, answer.json.code]).toEqual([403, 'already_enrolled']);
    expect(await refusalsOf('has@refused.example')).toMatchObject([
      { code: 'already_enrolled', subject: true, org_id: await orgOf('has@refused.example') },
    ]);
  });

  it('10.24 is no audit row when a state is invalid, which says nothing of a key', async () => {
    const client = await newcomer('stale@refused.example');
    const { publicKey } = await start(client);
    const credential = newKey().create(publicKey, app.baseUrl);
    for (const path of ['complete', 'failed']) {
      const body = { state: 'e30.e30.e30.e30.e30', credential, error: 'NotAllowedError' };
      const answer = await client.post(`/enroll/webauthn/${path}`, body);
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_state']);
    }
    expect(await refusalsOf('stale@refused.example')).toEqual([]);
  });

  describe('a refusal by the browser', () => {
    it.each([
      ['NotAllowedError', 'not_completed'],
      ['InvalidStateError', 'already_on_key'],
      ['SecurityError', 'wrong_address'],
      ['<script>', 'browser_failed'],
    ])('10.24 %s is an audit row: %s', async (error, code) => {
      const email = `${crypto.randomUUID()}@browser.example`;
      const client = await newcomer(email);
      const { state } = await start(client);
      const answer = await client.post('/enroll/webauthn/failed', { state, error });
      expect([answer.status, answer.json]).toEqual([200, { reference: reference(answer) }]);
      expect(await refusalsOf(email)).toMatchObject([{ code, request_id: reference(answer) }]);
    });

    it('10.24 is recorded once of 20 reports at once, and ends its ceremony', async () => {
      const email = 'flood@browser.example';
      const client = await newcomer(email);
      const { state, publicKey } = await start(client);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          client.post(
            '/enroll/webauthn/failed',
            { state, error: 'NotAllowedError' },
            { address: newAddress() },
          ),
        ),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(await refusalsOf(email)).toHaveLength(1);
      const credential = newKey().create(publicKey, app.baseUrl);
      const late = await client.post('/enroll/webauthn/complete', { state, credential });
      expect([late.status, late.json.code]).toEqual([400, 'invalid_state']);
    });

    it('10.24 is accepted from a session only on the service’s own page', async () => {
      const body = { state: 'x', error: 'NotAllowedError' };
      expect((await app.client().post('/enroll/webauthn/failed', body)).status).toBe(401);
      const client = await newcomer('origin@browser.example');
      const { state } = await start(client);
      const headers = { origin: 'https://evil.example' };
      const answer = await client.post('/enroll/webauthn/failed', { ...body, state }, { headers });
      expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
    });
  });

  it('10.10 users see the events of their own keys, and of no other user’s', async () => {
    const email = 'told@keys-page.example';
    const client = await newcomer(email);
    // refused for the e-mail address, because no user exists yet
    const refused = await client.enroll(newKey(EXCLUDED));
    expect((await client.enroll(newKey())).status).toBe(200);
    const again = await newcomer(email);
    // refused for the user, who has a key already
    const tried = await again.post('/enroll/webauthn/start', {});
    await (await newcomer('other@keys-page.example')).enroll(newKey(EXCLUDED));

    const { text } = await client.get('/account/keys');
    expect(text.match(/data-event="(\w+)"/g)).toEqual([
      'data-event="enrollment_refused"',
      'data-event="enrollment"',
      'data-event="enrollment_refused"',
    ]);
    for (const answer of [refused, tried]) expect(text).toContain(reference(answer));
    expect(text).toContain('YubiKey 5 FIPS Series');
  });
});
