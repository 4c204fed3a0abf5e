import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { previewEnd } from '#domain/admin/organization/end-preview.repository.js';
import { readDetails } from '#domain/admin/members/member-details.repository.js';
import { CertificateRevocation } from '#domain/ssh/certificate-revocation.repository.js';
import { countOwnCertificates } from '#domain/ssh/own-certificates.repository.js';
import { moveSerials } from '#domain/ssh/serials/serials.repository.js';
import { publicKeyBlob, publicKeyLine, writePrivateKey } from '@svc/openssh';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { idOf } from '../support/org-api.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const KRL = '/v1/credentials/ssh/krl';

/** `app` and `replica` run on one database, with two keys of the SSH authority. */
describe('ranges of serials whose certificates may be lost', () => {
  let database: TestDatabase;
  let app: TestApp;
  let replica: TestApp;
  let emptyLength: number;

  const [present, next] = [0, 1].map(() => generateKeyPairSync('ed25519').privateKey) as [
    KeyObject,
    KeyObject,
  ];
  const blobs = [present, next].map(publicKeyBlob);

  beforeAll(async () => {
    database = await createTestDatabase();
    const environment = {
      SVC_SSH_CA_KEY: `${writePrivateKey(present, '')}${publicKeyLine(publicKeyBlob(next), 'next')}\n`,
    };
    app = await startTestApp({ database, environment });
    replica = await startTestApp({ database, environment });
    emptyLength = (await krl()).body.length;
  });
  afterAll(async () => {
    await replica.close();
    await app.close();
    await database.drop();
  });
  beforeEach(() => app.dataSource.query('TRUNCATE ssh_certificates, ssh_revoked_ranges'));

  const get = async (path: string, headers: Record<string, string> = {}, of = app) => {
    const answer = await fetch(`${of.baseUrl}${path}`, {
      headers: { 'x-forwarded-for': newAddress(), ...headers },
    });
    const body = Buffer.from(await answer.arrayBuffer());
    return { status: answer.status, etag: answer.headers.get('etag') ?? '', body };
  };
  const krl = async (of = app) => {
    const answer = await get(KRL, {}, of);
    return { ...answer, number: answer.body.readBigUInt64BE(12) };
  };
  const json = async (path = KRL) =>
    JSON.parse((await get(path, { accept: 'application/json' })).body.toString());
  const addRange = (first: bigint | number, last: bigint | number, carried = '9 hours') =>
    app.dataSource.query(
      `INSERT INTO ssh_revoked_ranges VALUES ($1, $2, now(), now() + $3::interval)`,
      [String(first), String(last), carried],
    );
  const record = (serial: number, revoked = true) =>
    app.dataSource.query(
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
         valid_after, valid_before, revoked_at, revoke_reason, revoked_by)
       SELECT $1, $2, $2, 'k', '{p}', 'f', (SELECT fingerprint FROM ssh_authorities ORDER BY signs_since LIMIT 1),
         now(), now() + interval '1 hour', r.at, r.because, r.because
       FROM (SELECT CASE WHEN $3 THEN now() END AS at, CASE WHEN $3 THEN 'test' END AS because) r`,
      [serial, randomUUID(), revoked],
    );
  const revokedSerial = async (serial: number | bigint) => (await json(`${KRL}/${serial}`)).revoked;
  const move = (revokeFrom: 'first' | 'unrecorded') =>
    app.dataSource.transaction((tx) =>
      moveSerials(tx, {
        kind: 'another',
        clock: Date.now(),
        revokeFrom,
        highestSeen: 1n,
        sessionHours: 8,
      }),
    );

  it('are on the list under each key of the authority, in 21 bytes', async () => {
    const none = await krl();
    expect(none.body).toHaveLength(emptyLength);
    await addRange(1, 1_763_683_200_000_000);
    const { body } = await krl();
    for (const blob of blobs) expect(body.includes(blob)).toBe(true);
    const section = 5 + 4 + publicKeyBlob(present).length + 4;
    expect(body).toHaveLength(emptyLength + 2 * (section + 21));
    expect((await krl(replica)).body.equals(body)).toBe(true);
  });

  it('change the number and the ETag when one is added, and when it leaves the list', async () => {
    await record(5);
    const before = await krl();
    await addRange(1_000, 2_000);
    const added = await krl();
    expect(added.number).toBeGreaterThan(before.number);
    expect((await get(KRL, { 'if-none-match': before.etag })).status).toBe(200);
    expect((await get(KRL, { 'if-none-match': added.etag })).status).toBe(304);
    expect((await krl(replica)).number).toBe(added.number);

    await app.dataSource.query('UPDATE ssh_revoked_ranges SET carried_until = now()');
    const left = await krl();
    expect(left.number).toBeGreaterThan(added.number);
    expect(left.etag).not.toBe(added.etag);
    expect(left.body.subarray(44).equals(before.body.subarray(44))).toBe(true);
    expect((await get(KRL, { 'if-none-match': added.etag })).status).toBe(200);
  });

  it('give the list a number beyond that of a list that the database lost', async () => {
    const before = Date.now();
    await move('unrecorded');
    const first = await krl();
    expect(first.number).toBeGreaterThan(BigInt(before + 60_000));
    const lost = await app.dataSource.transaction(async (tx) => {
      // as on another standby, which has not replayed the change
      await tx.query('TRUNCATE ssh_revoked_ranges');
      await tx.query('UPDATE ssh_revocation_list SET number = 5');
      return first.number;
    });
    await move('unrecorded');
    expect((await krl()).number).toBeGreaterThan(lost);
  });

  it('change the number when a key is published, since they are under that key too', async () => {
    await addRange(1_000, 2_000);
    const before = await krl();
    await app.dataSource.query(
      "INSERT INTO ssh_authorities (fingerprint, public_key) VALUES ('third', 'key third')",
    );
    try {
      const { number, body } = await krl();
      expect(number).toBeGreaterThan(before.number);
      expect(body.includes('key third')).toBe(true);
      expect((await krl(replica)).body.equals(body)).toBe(true);
    } finally {
      await app.dataSource.query("DELETE FROM ssh_authorities WHERE fingerprint = 'third'");
    }
  });

  it('are in the JSON beside the serials, joined where they overlap, and not counted', async () => {
    for (const serial of [5, 1_500, 9_000]) await record(serial);
    await addRange(1_000, 2_000);
    await addRange(1_200, 3_000);
    await addRange(3_001, 3_001);
    await addRange(7_000, 7_000);
    await addRange(8_000, 8_500, '-1 second');
    expect(await json()).toEqual({
      revoked_serials: ['5', '1500', '9000'],
      revoked_ranges: [
        { first: '1000', last: '3001' },
        { first: '7000', last: '7000' },
      ],
      total: 3,
      generated_at: expect.any(String),
    });
  });

  it('make each of their serials revoked, also without a certificate and after they left the list', async () => {
    await record(1_500, false);
    await addRange(1_000, 2_000);
    const asked = [999, 1_000, 1_500, 2_000, 2_001];
    const answers = () => Promise.all(asked.map(revokedSerial));
    expect(await answers()).toEqual([false, true, true, true, false]);
    await app.dataSource.query('UPDATE ssh_revoked_ranges SET carried_until = now()');
    expect(await answers()).toEqual([false, true, true, true, false]);
  });

  it('of 5,000 rows are read whole', async () => {
    await app.dataSource.query(
      `INSERT INTO ssh_revoked_ranges SELECT 10 * i, 10 * i + 3, now(), now() + interval '1 hour'
       FROM generate_series(1, 5000) i`,
    );
    const { revoked_ranges: ranges } = await json();
    expect(ranges).toHaveLength(5_000);
    expect(ranges.at(-1)).toEqual({ first: '50000', last: '50003' });
  });

  describe('with a certificate in one', () => {
    let client: Client;
    let email: string;
    let serial: string;

    beforeEach(async () => {
      email = `u${randomUUID().slice(0, 8)}@range.example`;
      ({ client } = await app.enrolled(email));
      const body = { public_key: newPublicKeyLine() };
      serial = (await client.post('/v1/credentials/ssh', body)).json.serial;
    });

    it('no page, count or export calls the certificate valid', async () => {
      const id = await idOf(app, email);
      const { manager } = app.dataSource;
      const users = new CertificateRevocation();
      const counted = async () => [
        await countOwnCertificates(manager, id),
        (await users.count(manager, { id }))['certificates'],
        (await users.countByKey(manager, id)).length,
        (await previewEnd(manager, [id])).counts?.['certificates'],
        (await readDetails(manager, id)).certificates.length,
      ];
      expect(await counted()).toEqual([1, 1, 1, 1, 1]);
      await move('first');
      expect(await revokedSerial(BigInt(serial))).toBe(true);
      const { credentials } = (await client.get('/v1/account/credentials')).json;
      expect(credentials).toMatchObject([{ serial, revoked_at: expect.any(String) }]);
      expect(await counted()).toEqual([0, 0, 0, 0, 0]);
      const exported = JSON.parse((await client.get('/v1/account/export')).text);
      expect(exported.ssh_certificates).toMatchObject([
        { serial, revoked_at: expect.any(String), revoke_reason: 'database lost commits' },
      ]);
    });

    it('the next certificate is valid, and above the range', async () => {
      const { floor } = await move('unrecorded');
      const body = { public_key: newPublicKeyLine() };
      const { json: issued } = await client.post('/v1/credentials/ssh', body);
      expect(BigInt(issued.serial)).toBeGreaterThan(floor);
      expect(await revokedSerial(BigInt(issued.serial))).toBe(false);
      // not revoked, because the database has its row
      expect(await revokedSerial(BigInt(serial))).toBe(false);
    });
  });
});
