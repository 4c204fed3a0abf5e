import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseCertificate, trustAnchorFromPem } from '@svc/webauthn-policy';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { FLAG } from '@svc/stand-ins/authenticator-messages';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { addMember, idOf, orgApi } from '../support/org-api.js';
import { rows } from '../support/rows.js';
import { AAGUID } from '../support/soft-key.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import {
  SecurityKeyVendor,
  type SshKeyTampering,
  type SshSecurityKey,
} from '../support/ssh-security-key.js';

const vendor = new SecurityKeyVendor(new Date());
const middle = issueAuthority('Test Intermediate', vendor.now, vendor.root);
const unknown = issueAuthority('Unknown Intermediate', vendor.now, vendor.root);
const ANCHOR = trustAnchorFromPem(vendor.root.pem, {
  intermediates: [parseCertificate(middle.der)],
});
const PIN_ONLY = { flags: FLAG.userPresent | FLAG.userVerified, credProtect: 3 };
const MODEL = 'YubiKey 5 Series with NFC';

const ask = (client: Client, body: unknown) =>
  client.post('/v1/credentials/ssh', body, { address: newAddress() });

async function newChallenge(client: Client): Promise<{ challenge: Buffer; state: string }> {
  const answer = await client.post('/v1/credentials/ssh/challenge', {}, { address: newAddress() });
  expect(answer.status).toBe(200);
  const { challenge, state } = answer.json;
  return { challenge: Buffer.from(challenge as string, 'base64'), state };
}

/**
 * Returns the body of a request for a certificate: the key, its attestation, and the state of the
 * challenge.
 */
function requestFor({ publicKey, attestation }: SshSecurityKey, state: string) {
  return {
    public_key: publicKey,
    attestation: { state, data: attestation.toString('base64') },
  };
}

/**
 * Makes an SSH key whose attestation answers a new challenge, and requests a certificate for the
 * key.
 */
async function certify(
  client: Client,
  tampering: SshKeyTampering = {},
): Promise<{ answer: Answer; key: SshSecurityKey }> {
  const { challenge, state } = await newChallenge(client);
  const key = vendor.newKey(challenge, tampering);
  return { answer: await ask(client, requestFor(key, state)), key };
}

const refusedAs = ({ status, json }: Answer) => [status, json.code];

/**
 * Returns true if a certificate has the critical option `verify-required`. The name is in its bytes
 * as plain text.
 */
const demandsVerification = (certificate: string) =>
  Buffer.from(certificate.split(' ')[1] ?? '', 'base64').includes('verify-required');

describe('POST /v1/credentials/ssh/challenge', () => {
  let app: TestApp;
  let client: Client;
  beforeAll(async () => {
    app = await startTestApp({ trustAnchors: [ANCHOR] });
    ({ client } = await app.enrolled('ada@sk.example'));
  });
  afterAll(() => app.close());
  afterEach(() => vi.useRealTimers());

  it('gives 32 new bytes and a state for five minutes', async () => {
    const [one, two] = await Promise.all([
      client.post('/v1/credentials/ssh/challenge'),
      client.post('/v1/credentials/ssh/challenge'),
    ]);
    expect(one.json).toEqual({
      challenge: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
      state: expect.any(String),
      expires_in: 300,
    });
    expect(Buffer.from(one.json.challenge as string, 'base64')).toHaveLength(32);
    expect(one.json.challenge).not.toBe(two.json.challenge);
    expect(one.headers.get('cache-control')).toContain('no-store');
  });

  it('is for hardware-verified sessions alone', async () => {
    const nobody = await app.client().post('/v1/credentials/ssh/challenge');
    expect(refusedAs(nobody)).toEqual([401, 'unauthenticated']);
    const bootstrap = app.client();
    await bootstrap.signIn('ada@sk.example');
    const answer = await bootstrap.post('/v1/credentials/ssh/challenge');
    expect(refusedAs(answer)).toEqual([403, 'hardware_required']);
  });

  it('is spent by one of 20 requests that carry it at once', async () => {
    const { challenge, state } = await newChallenge(client);
    const key = vendor.newKey(challenge);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(client, requestFor(key, state))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const others = answers.filter(({ status }) => status !== 200);
    expect(new Set(others.map(({ json }) => json.code))).toEqual(new Set(['invalid_state']));
  });

  it('is spent by an attestation that fails', async () => {
    const { challenge, state } = await newChallenge(client);
    const wrong = vendor.newKey(challenge, { rpId: 'ssh:other' });
    expect(refusedAs(await ask(client, requestFor(wrong, state)))).toEqual([
      400,
      'attestation_rejected',
    ]);
    const good = vendor.newKey(challenge);
    expect(refusedAs(await ask(client, requestFor(good, state)))).toEqual([400, 'invalid_state']);
  });

  it('is refused after five minutes, and accepted before', async () => {
    const [late, early] = [await newChallenge(client), await newChallenge(client)];
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: now + 301_000 });
    const expired = await ask(client, requestFor(vendor.newKey(late.challenge), late.state));
    expect(refusedAs(expired)).toEqual([400, 'invalid_state']);
    vi.setSystemTime(now + 290_000);
    const answer = await ask(client, requestFor(vendor.newKey(early.challenge), early.state));
    expect(answer.status).toBe(200);
  });

  it('of another user, or of another session of the same user, is refused', async () => {
    const { client: grace, key } = await app.enrolled('grace@sk.example');
    const again = app.client();
    const { state: login, publicKey } = (await again.post('/login/webauthn/start', {})).json;
    const credential = key.get(publicKey, app.baseUrl);
    expect(
      (await again.post('/login/webauthn/complete', { state: login, credential })).status,
    ).toBe(200);
    for (const other of [client, again]) {
      const { challenge, state } = await newChallenge(grace);
      const answer = await ask(other, requestFor(vendor.newKey(challenge), state));
      expect(refusedAs(answer)).toEqual([400, 'invalid_state']);
    }
  });

  it('cannot be replaced by the state of another ceremony', async () => {
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const key = vendor.newKey(Buffer.from(publicKey.challenge as string, 'base64url'));
    expect(refusedAs(await ask(client, requestFor(key, state)))).toEqual([400, 'invalid_state']);
  });
});

describe('POST /v1/credentials/ssh with an attestation', () => {
  let app: TestApp;
  let client: Client;
  beforeAll(async () => {
    app = await startTestApp({ trustAnchors: [ANCHOR] });
    ({ client } = await app.enrolled('ada@sk.example'));
  });
  afterAll(() => app.close());

  const lastRecord = async (serial: unknown) => {
    const [row] = await rows(
      app.dataSource,
      `SELECT c.attested, c.verify_required, c.aaguid, e.details FROM ssh_certificates c
       JOIN audit_events e ON e.details->>'serial' = c.serial::text WHERE c.serial = $1`,
      [serial],
    );
    return row;
  };

  it.each(['ecdsa', 'ed25519'] as const)(
    'certifies an attested %s-sk key, and records the model with certificate and audit event',
    async (type) => {
      const { answer } = await certify(client, { type });
      expect(answer.json).toMatchObject({
        certificate: expect.stringMatching(
          /^sk-(ssh-ed25519|ecdsa-sha2-nistp256)-cert-v01@openssh\.com /,
        ),
        attestation: { aaguid: AAGUID, model: MODEL, verify_required: false },
      });
      expect(demandsVerification(answer.json.certificate)).toBe(false);
      expect(await lastRecord(answer.json.serial)).toMatchObject({
        attested: true,
        verify_required: false,
        aaguid: AAGUID,
        details: { attested: true, verify_required: false, aaguid: AAGUID, model: MODEL },
      });
    },
  );

  it('sets verify-required for a key that demands its PIN, now and in each later certificate', async () => {
    const { answer, key } = await certify(client, PIN_ONLY);
    const later = await ask(client, { public_key: key.publicKey });
    for (const { json } of [answer, later]) {
      expect(json.attestation).toEqual({ aaguid: AAGUID, model: MODEL, verify_required: true });
      expect(demandsVerification(json.certificate)).toBe(true);
      expect(await lastRecord(json.serial)).toMatchObject({
        attested: true,
        verify_required: true,
        details: { attested: true, verify_required: true, model: MODEL },
      });
    }
  });

  it('says nothing of hardware about a key without an attestation', async () => {
    const { publicKey } = vendor.newKey(Buffer.alloc(32));
    const answer = await ask(client, { public_key: publicKey });
    expect(answer.status).toBe(200);
    expect(answer.json).not.toHaveProperty('attestation');
    const record = await lastRecord(answer.json.serial);
    expect(record).toMatchObject({ attested: false, verify_required: false, aaguid: null });
    expect(record?.['details']).not.toHaveProperty('attested');
  });

  it('keeps the proof of one user from another user', async () => {
    const { key } = await certify(client, PIN_ONLY);
    const { client: grace } = await app.enrolled('grace@sk.example');
    const answer = await ask(grace, { public_key: key.publicKey });
    expect(answer.json).not.toHaveProperty('attestation');
  });

  it('completes the chain with an intermediate of the anchor, and names one that is missing', async () => {
    const { answer } = await certify(client, { issuer: middle });
    expect(answer.json.attestation.aaguid).toBe(AAGUID);
    const refused = await certify(client, { issuer: unknown });
    expect(refusedAs(refused.answer)).toEqual([400, 'attestation_rejected']);
    expect(refused.answer.json.detail).toContain('CN=Unknown Intermediate');
  });

  it.each([
    ['data that is no base64', { state: 'x', data: '****' }, 400, 'invalid_request'],
    ['no data', { state: 'x' }, 400, 'invalid_request'],
    [
      'data of 6 KiB, beyond the largest file',
      { state: 'x', data: 'A'.repeat(8193) },
      413,
      'body_too_large',
    ],
    ['a forged state', { state: 'x', data: 'AAAA' }, 400, 'invalid_state'],
  ])('refuses %s', async (_, attestation, status, code) => {
    const { publicKey } = vendor.newKey(Buffer.alloc(32));
    const answer = await ask(client, { public_key: publicKey, attestation });
    expect(refusedAs(answer)).toEqual([status, code]);
  });

  it('refuses an attestation for a key that is not of a security key, and certifies nothing', async () => {
    const { challenge, state } = await newChallenge(client);
    const { attestation } = vendor.newKey(challenge);
    const before = await rows(app.dataSource, 'SELECT FROM ssh_certificates');
    const answer = await ask(client, {
      public_key: newPublicKeyLine(),
      attestation: { state, data: attestation.toString('base64') },
    });
    expect(refusedAs(answer)).toEqual([400, 'attestation_rejected']);
    expect(await rows(app.dataSource, 'SELECT FROM ssh_certificates')).toHaveLength(before.length);
  });

  it('records no proof when the certificate is refused', async () => {
    const { challenge, state } = await newChallenge(client);
    const key = vendor.newKey(challenge);
    const answer = await ask(client, { ...requestFor(key, state), principals: ['root'] });
    expect(refusedAs(answer)).toEqual([403, 'principal_not_allowed']);
    const later = await ask(client, { public_key: key.publicKey });
    expect(later.json).not.toHaveProperty('attestation');
  });
});

describe('SVC_ALLOWED_AAGUIDS', () => {
  it('refuses an SSH key in a model that is not allowed', async () => {
    const app = await startTestApp({
      trustAnchors: [ANCHOR],
      environment: { SVC_ALLOWED_AAGUIDS: 'f8a011f3-8c0a-4d15-8006-17111f9edc7d' },
    });
    try {
      const key = app.newKey({ aaguid: 'f8a011f3-8c0a-4d15-8006-17111f9edc7d' });
      const client = app.client();
      await client.signIn('ada@sk.example');
      expect((await client.enroll(key)).status).toBe(200);
      const { answer } = await certify(client);
      expect(refusedAs(answer)).toEqual([400, 'model_not_allowed']);
    } finally {
      await app.close();
    }
  });
});

describe('SVC_SSH_REQUIRE_SK=true', () => {
  let app: TestApp;
  let client: Client;
  beforeAll(async () => {
    app = await startTestApp({
      trustAnchors: [ANCHOR],
      environment: { SVC_SSH_REQUIRE_SK: 'true' },
    });
    ({ client } = await app.enrolled('ada@sk.example'));
  });
  afterAll(() => app.close());

  const required = [403, 'hardware_ssh_key_required'];

  it('refuses keys of software, and security keys that nothing proves', async () => {
    const { publicKey } = vendor.newKey(Buffer.alloc(32));
    for (const public_key of [newPublicKeyLine(), newPublicKeyLine('rsa'), publicKey]) {
      expect(refusedAs(await ask(client, { public_key }))).toEqual(required);
    }
    expect(await rows(app.dataSource, 'SELECT FROM ssh_certificates')).toEqual([]);
  });

  it('certifies an attested key, and certifies it again without a new attestation', async () => {
    const { answer, key } = await certify(client);
    expect(answer.status).toBe(200);
    expect((await ask(client, { public_key: key.publicKey })).status).toBe(200);
  });

  it('refuses the proven key of another user', async () => {
    const { key } = await certify(client);
    const { client: grace } = await app.enrolled('grace@sk.example');
    expect(refusedAs(await ask(grace, { public_key: key.publicKey }))).toEqual(required);
  });

  it('forgets the keys of a member whose credentials an admin revoked', async () => {
    const memberId = await addMember(app, 'ada@sk.example', 'mia@sk.example');
    const { client: mia } = await app.enrolled('mia@sk.example');
    const { key } = await certify(mia);
    const answer = await orgApi(client, 'POST', `/members/${memberId}/revoke-credentials`);
    expect(answer.status).toBe(200);
    const [event] = await rows(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'admin_revoke_credentials' AND subject_id = $1`,
      [memberId],
    );
    expect(event?.['details']).toMatchObject({ ssh_keys: 1, certificates: 1 });
    const { client: again } = await app.enrolled('mia@sk.example');
    expect(refusedAs(await ask(again, { public_key: key.publicKey }))).toEqual(required);
  });

  it('leaves no proof and no certificate where attestations race with the revocation', async () => {
    const memberId = await addMember(app, 'ada@sk.example', 'max@sk.example');
    const { client: max } = await app.enrolled('max@sk.example');
    const bodies = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const { challenge, state } = await newChallenge(max);
        return requestFor(vendor.newKey(challenge), state);
      }),
    );
    const requests = bodies.map((body) => ask(max, body));
    const revoked = orgApi(client, 'POST', `/members/${memberId}/revoke-credentials`);
    const answers = await Promise.all(requests);
    expect((await revoked).status).toBe(200);
    expect(answers.filter(({ status }) => status !== 200 && status !== 401)).toEqual([]);
    const left = await rows(
      app.dataSource,
      `SELECT public_key FROM ssh_attested_keys WHERE user_id = $1
       UNION ALL SELECT public_key FROM ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL`,
      [memberId],
    );
    expect(left).toEqual([]);
  });

  it('forgets the keys of a deleted user', async () => {
    const { client: eve } = await app.enrolled('eve@sk.example');
    await certify(eve);
    const userId = await idOf(app, 'eve@sk.example');
    const left = () =>
      rows(app.dataSource, 'SELECT FROM ssh_attested_keys WHERE user_id = $1', [userId]);
    expect(await left()).toHaveLength(1);
    expect((await orgApi(client, 'POST', `/members/${userId}/remove`)).status).toBe(204);
    expect(await left()).toEqual([]);
  });
});
