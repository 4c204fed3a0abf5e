import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AccessRevocation } from '../../../src/domain/access-revocation/access-revocation.service.js';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { makeHostGroup } from '../../support/access-hosts.js';
import { ageTouches } from '../../support/access-targets.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { addKey } from '../../support/keys.js';
import { rows } from '../../support/rows.js';
import { PUBLIC_KEY } from '../../support/ssh-issuance.js';

const MAIL = 'alice@touches.example';
const FIPS_MODEL = '73bb0cd4-e502-49b8-9c6f-b59445bf720b';

/** The greatest age of a touch, in seconds, with which a group of hosts admits. */
const WITHIN = 900;

/**
 * The person has three keys: one of a FIPS-certified model, one of a model that is not certified,
 * and one with a `fido-u2f` attestation, which has no PIN.
 */
describe('the touches of several keys in one session', () => {
  let app: TestApp;
  let client: Client;
  let keys: Record<'fips' | 'plain' | 'u2f', SoftwareKey>;
  let orgId: string;
  /** The serial of the certificate that {@link certificate} issued last. */
  let lastSerial: string;

  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    await rows(app.dataSource, 'DELETE FROM users');
    await rows(app.dataSource, 'TRUNCATE rate_limits');
    await rows(app.dataSource, `DELETE FROM access_targets WHERE kind = 'host_group'`);
    await rows(app.dataSource, 'TRUNCATE access_kept_host_rules');
    client = app.client();
    await client.signIn(MAIL);
    keys = {
      fips: app.newKey({ aaguid: FIPS_MODEL }),
      plain: app.newKey(),
      u2f: app.newKey({ format: 'fido-u2f' }),
    };
    await client.enroll(keys.fips);
    for (const key of [keys.plain, keys.u2f]) {
      await addKey(app, client, key);
    }
    const users = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT u.org_id FROM users u JOIN authenticators k ON k.user_id = u.id',
    );
    if (users.length !== 3) throw new Error('three keys were not enrolled');
    orgId = users[0]?.org_id ?? '';
  });

  /** Makes every earlier touch in the session 600 seconds older, and then steps up with a key. */
  async function touchLater(key: SoftwareKey): Promise<void> {
    await ageTouches(app, MAIL, 600);
    expect((await client.logIn(key, { address: newAddress() })).status).toBe(200);
  }

  /**
   * Issues a certificate. Returns the principals of groups in it, and its lifetime in whole
   * minutes.
   */
  async function certificate(): Promise<{ groups: string[]; minutes: number }> {
    const answer = await client.post(
      '/v1/credentials/ssh',
      { public_key: PUBLIC_KEY },
      { address: newAddress() },
    );
    expect(answer.status, answer.text).toBe(200);
    const {
      serial,
      principals,
      valid_before: end,
    } = answer.json as {
      serial: string;
      principals: string[];
      valid_before: string;
    };
    lastSerial = serial;
    const groups = principals.filter((name) => name !== MAIL).map((name) => name.split(':')[0]);
    return {
      groups: groups as string[],
      minutes: Math.round((Date.parse(end) - Date.now()) / 60_000),
    };
  }

  it('renew the age that a FIPS condition counts by a key of such a model alone', async () => {
    await makeHostGroup(app.dataSource, {
      orgId,
      name: 'vault',
      touchWithinSeconds: WITHIN,
      models: 'fips-only',
    });
    expect(await certificate()).toEqual({ groups: ['deploy@vault'], minutes: 15 });
    await touchLater(keys.plain);
    expect(await certificate()).toEqual({ groups: ['deploy@vault'], minutes: 5 });
    await ageTouches(app, MAIL, 1);
    expect((await client.logIn(keys.u2f, { address: newAddress() })).status).toBe(200);
    expect(await certificate()).toEqual({ groups: ['deploy@vault'], minutes: 5 });
    await touchLater(keys.u2f);
    expect((await certificate()).groups).toEqual([]);
    await touchLater(keys.fips);
    expect(await certificate()).toEqual({ groups: ['deploy@vault'], minutes: 15 });
  });

  it('renew an age without a model by every key', async () => {
    await makeHostGroup(app.dataSource, { orgId, name: 'prod', touchWithinSeconds: WITHIN });
    for (const key of Object.values(keys)) {
      await touchLater(key);
      expect(await certificate()).toEqual({ groups: ['deploy@prod'], minutes: 15 });
    }
  });

  it('renew an age that demands the PIN by a touch with the PIN alone', async () => {
    await makeHostGroup(app.dataSource, {
      orgId,
      name: 'safe',
      touchWithinSeconds: WITHIN,
      userVerification: 'required',
    });
    await touchLater(keys.u2f);
    expect(await certificate()).toEqual({ groups: ['deploy@safe'], minutes: 5 });
    await touchLater(keys.plain);
    expect(await certificate()).toEqual({ groups: ['deploy@safe'], minutes: 15 });
  });

  it('count no longer once their key is removed', async () => {
    await makeHostGroup(app.dataSource, { orgId, name: 'vault', models: 'fips-only' });
    // The session begins with another key, because the removal of a key also ends the sessions that
    // the key opened.
    client = app.client();
    await client.signIn(MAIL);
    for (const key of [keys.plain, keys.fips]) await touchLater(key);
    expect((await certificate()).groups).toEqual(['deploy@vault']);
    const [fips] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM authenticators ORDER BY created_at, id LIMIT 1',
    );
    const gone = await client.send('DELETE', `/v1/keys/${fips?.id ?? ''}`, {
      address: newAddress(),
    });
    expect(gone.status).toBeLessThan(300);
    expect((await certificate()).groups).toEqual([]);
  });

  /**
   * Signs in again by the key of the plain model. The removal of another key leaves this session.
   */
  async function signInWithPlainKey(): Promise<void> {
    client = app.client();
    await client.signIn(MAIL);
    await touchLater(keys.plain);
  }

  /** Returns the id of the key of the FIPS-certified model, which was enrolled first. */
  async function idOfFipsKey(): Promise<string> {
    const [fips] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM authenticators ORDER BY created_at, id LIMIT 1',
    );
    return fips?.id ?? '';
  }

  async function idOfUser(): Promise<string> {
    const [user] = await rows<{ id: string }>(app.dataSource, 'SELECT id FROM users');
    return user?.id ?? '';
  }

  async function removeFipsKey(): Promise<void> {
    const id = await idOfFipsKey();
    const gone = await client.send('DELETE', `/v1/keys/${id}`, { address: newAddress() });
    expect(gone.status).toBeLessThan(300);
  }

  async function isRevoked(serial: string): Promise<boolean> {
    const [row] = await rows<{ revoked: boolean }>(
      app.dataSource,
      'SELECT revoked_at IS NOT NULL AS revoked FROM ssh_certificates WHERE serial = $1',
      [serial],
    );
    return row?.revoked === true;
  }

  it('end with their key the certificates whose conditions no other key meets', async () => {
    await signInWithPlainKey();
    await certificate();
    const ofNoGroup = lastSerial;
    await makeHostGroup(app.dataSource, { orgId, name: 'vault', models: 'fips-only' });
    await touchLater(keys.fips);
    expect((await certificate()).groups).toEqual(['deploy@vault']);
    const ofVault = lastSerial;
    const counts = await app.nest
      .get(AccessRevocation, { strict: false })
      .countByKey(app.dataSource.manager, await idOfUser());
    expect(counts.get(await idOfFipsKey())?.['certificates']).toBe(1);
    await touchLater(keys.plain);
    await removeFipsKey();
    expect(await isRevoked(ofVault)).toBe(true);
    expect(await isRevoked(ofNoGroup)).toBe(false);
  });

  it('end with their key the certificates that the touch of another key would end sooner', async () => {
    await signInWithPlainKey();
    await makeHostGroup(app.dataSource, { orgId, name: 'prod', touchWithinSeconds: WITHIN });
    await ageTouches(app, MAIL, 600);
    expect(await certificate()).toEqual({ groups: ['deploy@prod'], minutes: 5 });
    const ofPlain = lastSerial;
    expect((await client.logIn(keys.fips, { address: newAddress() })).status).toBe(200);
    expect(await certificate()).toEqual({ groups: ['deploy@prod'], minutes: 15 });
    const ofFips = lastSerial;
    await removeFipsKey();
    expect(await isRevoked(ofFips)).toBe(true);
    expect(await isRevoked(ofPlain)).toBe(false);
  });
});
