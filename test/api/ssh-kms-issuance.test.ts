import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IssuingSession } from '#domain/ssh/certificate-issuance.service.js';
import type { Signer } from '#platform/crypto/signer.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { startFaultProxy, type Fault, type FaultProxy } from '../support/fault-proxy.js';
import { kmsAdmin, useMotoCredentials, type KmsAdmin } from '../support/kms.js';
import { startKmsStandIn, type KmsStandIn } from '../support/kms-stand-in.js';
import { startMoto, type Moto } from '../support/moto.js';
import { requires } from '../support/programs.js';
import { count, rows } from '../support/rows.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { ORIGIN, PUBLIC_KEY, SshIssuance } from '../support/ssh-issuance.js';

const restore = useMotoCredentials();
afterAll(restore);

describe('SSH certificates signed in KMS', () => {
  let kms: KmsStandIn;
  let world: SshIssuance;
  let session: IssuingSession;
  let signer: Signer;
  beforeAll(async () => {
    kms = await startKmsStandIn();
    world = await SshIssuance.open();
    const keyId = kms.create();
    const keys = [{ variable: 'SVC_SSH_CA_KMS_KEY_ID', keyId, use: 'Ed25519 or ES256' as const }];
    const kmsKeys = await KmsKeys.open({
      kms: { keys, endpoint: kms.endpoint },
      upstream: { extraCaCerts: [] },
    });
    signer = kmsKeys.signer(keyId, 'Ed25519', 'ES256');
  });
  afterAll(async () => {
    await world.close();
    await kms.close();
  });
  beforeEach(async () => {
    session = await world.reset();
  });

  it('share one statement where they are requested at once, and are signed in parallel', async () => {
    const service = await world.serviceWith([signer]);
    const request = { publicKey: PUBLIC_KEY };
    world.statements.length = 0;
    kms.gather = 20; // KMS answers no call before it has 20 calls
    const issued = await Promise.all(
      Array.from({ length: 20 }, () => service.issue({ session, request, origin: ORIGIN })),
    ).finally(() => (kms.gather = 0));
    expect(world.statements).toHaveLength(1);
    expect(new Set(issued.map(({ certificate }) => certificate)).size).toBe(20);
    expect(kms.mostAtOnce).toBe(20);
  });

  it('are signed by no more than 50 calls at a time', async () => {
    const service = await world.serviceWith([signer]);
    const request = { publicKey: PUBLIC_KEY };
    kms.gather = 51; // KMS would answer only if it got one call more than the limit
    const issued = Promise.all(
      Array.from({ length: 200 }, () => service.issue({ session, request, origin: ORIGIN })),
    );
    // The certificates are recorded before KMS is called. When 200 are recorded, the other 150 wait
    // for their turn.
    await expect.poll(() => count(world.dataSource, 'ssh_certificates')).toBe(200);
    await expect.poll(() => kms.mostAtOnce).toBe(50);
    kms.gather = 0;
    await issued;
    expect(kms.mostAtOnce).toBe(50);
  });
});

requires('moto').describe('POST /v1/credentials/ssh while KMS does not sign', () => {
  let moto: Moto;
  let admin: KmsAdmin;
  let proxy: FaultProxy;
  let keyId: string;
  let app: TestApp;
  beforeAll(async () => {
    moto = await startMoto();
    admin = await kmsAdmin(moto.endpoint);
    proxy = await startFaultProxy(moto.endpoint);
    keyId = await admin.create('ECC_NIST_P256');
    app = await startTestApp({
      environment: { SVC_SSH_CA_KMS_KEY_ID: keyId, AWS_ENDPOINT_URL_KMS: proxy.endpoint },
      kmsLimits: {
        attempts: 2,
        attemptTimeout: 500,
        callTimeout: 1000,
        firstPause: 1,
        longestPause: 1,
        failuresToOpen: 3,
        firstOpening: 20,
        longestOpening: 20,
      },
    });
  });
  afterAll(async () => {
    await app.close();
    await proxy.close();
    await moto.close();
  });
  afterEach(() => {
    proxy.fault = 'none';
  });

  const refusal = (status: number, type: string): Fault => ({
    status,
    body: JSON.stringify({ __type: type, message: 'a secret of KMS' }),
    headers: { 'content-type': 'application/x-amz-json-1.1' },
  });
  let users = 0;
  /** Enrolls a user. Returns a function that requests a certificate as the user. */
  const newUser = async () => {
    users += 1;
    const { client } = await app.enrolled(`user-${users}@outage.example`);
    return () => client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
  };
  const newest = async () => {
    const [certificate] = await rows<{ serial: string; revoke_reason: string | null }>(
      app.dataSource,
      'SELECT serial, revoke_reason, revoked_by FROM ssh_certificates ORDER BY serial DESC LIMIT 1',
    );
    return certificate;
  };

  it.each<[string, Fault]>([
    ['throttling', refusal(400, 'ThrottlingException')],
    ['an internal error', refusal(500, 'KMSInternalException')],
    ['denied access', refusal(400, 'AccessDeniedException')],
    ['no answer', 'hang'],
    ['cut connections', 'cut'],
    ['an answer that is not of KMS', { status: 200, body: '<html>' }],
  ])('is 503 with retry-after by %s, withholds the certificate, and heals', async (_, fault) => {
    const certify = await newUser();
    proxy.fault = fault;
    const refused = await certify();
    expect([refused.status, refused.json.code]).toEqual([503, 'kms_unavailable']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.text).not.toMatch(/secret|certificate-v|cert-v01/);
    proxy.fault = 'none';
    await expect.poll(async () => (await certify()).status, { interval: 20 }).toBe(200);
    expect(await newest()).toMatchObject({ revoke_reason: null });
  });

  it('is 503 while the key is disabled, and heals when it is enabled', async () => {
    const certify = await newUser();
    await admin.disable(keyId);
    const refused = await certify();
    expect([refused.status, refused.json.code]).toEqual([503, 'kms_unavailable']);
    await admin.enable(keyId);
    await expect.poll(async () => (await certify()).status, { interval: 20 }).toBe(200);
  });

  it('leaves a revoked row, which the list of revoked certificates has, and an audit event that says so', async () => {
    const certify = await newUser();
    proxy.fault = refusal(400, 'AccessDeniedException');
    expect((await certify()).status).toBe(503);
    const certificate = await newest();
    expect(certificate).toMatchObject({ revoke_reason: 'not signed', revoked_by: 'svc' });
    const serial = certificate?.serial ?? '';
    const list = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(list.json.revoked).toBe(true);
    const events = await rows(
      app.dataSource,
      `SELECT type, actor_id = subject_id AS by_user, org_id IS NOT NULL AS has_org, subject_email FROM audit_events
       WHERE details->>'serial' = '${serial}' ORDER BY created_at, id`,
    );
    const event = { by_user: true, has_org: true, subject_email: `user-${users}@outage.example` };
    expect(events).toEqual([
      { type: 'ssh_credential', ...event },
      { type: 'ssh_credential_withheld', ...event },
    ]);
  });
});
