import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { adminCommand, handTo, renameProvider } from '../../support/break-glass.js';
import type { Client } from '../../support/client.js';
import { createTestDatabase } from '../../support/database.js';
import { addKey } from '../../support/keys.js';
import { orgApi } from '../../support/org-api.js';
import { enrollWith, passFor, passGround, signedIn } from '../../support/passes.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

/** Two models from `config/`: one that `fips-only` allows, and one that it refuses. */
const FIPS = 'c1f9a0bc-1dd2-404a-b27f-8e29047a43fd';
const NOT_FIPS = '2fc0579f-8113-47ea-b116-bb5a8db9202a';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const sshCertificate = (browser: Client) =>
  browser.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
const isRevoked = async (serial: string) => {
  const answer = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
  return (answer.json as { revoked: boolean }).revoked;
};
const auditTypes = async (admin: Client) => {
  const { events } = (await orgApi(admin, 'GET', '/audit-events')).json as {
    events: { type: string }[];
  };
  return events.map(({ type }) => type);
};

describe('a lost key', () => {
  it('lost: a pass brings the person back with another key, and the lost one opens nothing', async () => {
    const { ada, bobKey, ids, domain } = await passGround(app, 'lost.example');
    const pass = await passFor(ada, ids.bob);

    const bob = await signedIn(app, `bob@${domain}`);
    const fresh = app.newKey();
    expect((await enrollWith(app, bob, fresh, pass)).status).toBe(200);
    expect((await sshCertificate(bob)).status).toBe(200);
    const later = await signedIn(app, `bob@${domain}`);
    expect((await later.logIn(fresh)).status).toBe(200);

    expect((await app.client().logIn(bobKey)).status).toBe(400);
    const inSession = await signedIn(app, `bob@${domain}`);
    // The login lists the new key alone (`allowCredentials`), so the lost key has no credential
    // that is listed.
    await expect(inSession.logIn(bobKey)).rejects.toThrow('no such credential');
    const types = await auditTypes(ada);
    expect(types).toEqual(
      expect.arrayContaining(['enrollment_pass_created', 'enrollment_pass_used', 'enrollment']),
    );
  });

  it('stolen: session and certificate of the thief end at once, and the password alone enrolls nothing', async () => {
    const { ada, bob, bobKey, ids, domain } = await passGround(app, 'stolen.example');
    const thief = bob.copy(); // the thief has the laptop with its open session, and the key
    const { serial } = (await sshCertificate(thief)).json;
    expect(await isRevoked(serial)).toBe(false);

    const pass = await passFor(ada, ids.bob);
    expect((await sshCertificate(thief)).status).toBe(401);
    expect(await isRevoked(serial)).toBe(true);
    expect((await thief.logIn(bobKey)).status).toBe(400);

    // The thief knows the password and so signs in upstream, but has no pass for a key of the
    // thief's own.
    const upstream = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, upstream, app.newKey())).json.code).toBe(
      'enrollment_pass_required',
    );
    const guess = `svc_pass_${'A'.repeat(43)}`;
    expect((await enrollWith(app, upstream, app.newKey(), guess)).json.code).toBe(
      'enrollment_pass_invalid',
    );
    expect((await sshCertificate(upstream)).status).toBe(403);

    const back = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, back, app.newKey(), pass)).status).toBe(200);
    expect((await sshCertificate(back)).status).toBe(200);
    expect((await upstream.get('/v1/keys')).status).toBe(403);
  });

  it('replaced: the person adds a second key, and removes the first, without an admin', async () => {
    const { bob, bobKey, domain } = await passGround(app, 'replaced.example');
    const second = app.newKey();
    expect((await addKey(app, bob, second, 'New')).status).toBe(200);
    const renewed = app.client();
    expect((await renewed.logIn(second)).status).toBe(200);
    const { keys } = (await renewed.get('/v1/keys')).json as {
      keys: { id: string; current: boolean }[];
    };
    const old = keys.find(({ current }) => !current);
    const removed = await renewed.send('DELETE', `/v1/keys/${old?.id}`);
    expect(removed.status).toBe(200);
    expect((await app.client().logIn(bobKey)).status).toBe(400);
    expect((await sshCertificate(renewed)).status).toBe(200);
    const again = await signedIn(app, `bob@${domain}`);
    expect((await again.logIn(second)).status).toBe(200);
  });

  it('recalled: an enrolled model goes on, its owner gets a pass, and the pass lifts no policy', async () => {
    const database = await createTestDatabase();
    const environment = { SVC_SSH_CA_KEY_PATH: `${database.config.dataDir}/ssh_ca_key` };
    const before = await startTestApp({ database, environment });
    const ada = before.client();
    const adaKey = before.newKey({ aaguid: FIPS });
    await ada.signIn('ada@recalled.example');
    await ada.enroll(adaKey);
    const bob = before.client();
    const bobKey = before.newKey({ aaguid: NOT_FIPS });
    await bob.signIn('bob@recalled.example');
    await bob.enroll(bobKey);
    await before.close();

    const policy = { ...environment, SVC_ALLOWED_AAGUIDS: 'fips-only' };
    const after = await startTestApp({ database, environment: policy });
    try {
      await renameProvider(after);
      const going = after.client();
      // the policy of models is for enrollments alone, so that an enrolled key still logs in
      expect((await going.logIn(bobKey)).status).toBe(200);
      expect((await sshCertificate(going)).status).toBe(200);

      const admin = after.client();
      await admin.logIn(adaKey);
      const { keys } = (await going.get('/v1/keys')).json as { keys: { aaguid: string }[] };
      expect(keys).toMatchObject([{ aaguid: NOT_FIPS }]);
      const [recalled] = await rows<{ user_id: string }>(
        after.dataSource,
        'SELECT user_id FROM authenticators WHERE aaguid = $1',
        [NOT_FIPS],
      );
      const pass = await passFor(admin, recalled?.user_id ?? '');
      expect((await sshCertificate(going)).status).toBe(401);

      const back = await signedIn(after, 'bob@recalled.example');
      const wrong = after.newKey({ aaguid: NOT_FIPS });
      expect(await enrollWith(after, back, wrong, pass)).toMatchObject({
        status: 400,
        json: { code: 'model_not_allowed' },
      });
      const right = after.newKey({ aaguid: FIPS });
      // the refusal above did not use up the pass
      expect((await enrollWith(after, back, right, pass)).status).toBe(200);
      expect((await sshCertificate(back)).status).toBe(200);
    } finally {
      await after.close();
      await database.drop();
    }
  });

  it('sole admin: the operator gives a pass, or makes another member an admin, and the audit log has both', async () => {
    const database = await createTestDatabase();
    const own = await startTestApp({ database });
    try {
      const { ada, bob, domain } = await passGround(own, 'sole.example');
      await handTo(own.dataSource, 'production');
      const { url } = database;
      const address = `ada@${domain}`;
      const given = await adminCommand(['give-pass', address], { url, input: `${address}\n` });
      expect(given.status).toBe(0);
      expect((await orgApi(ada, 'GET', '/members')).status).toBe(401);
      const made = await adminCommand(['make-admin', `bob@${domain}`, '--yes'], { url });
      expect(made.status).toBe(0);
      expect((await orgApi(bob, 'GET', '/members')).status).toBe(200);

      const back = await signedIn(own, address);
      const enrolled = await enrollWith(own, back, own.newKey(), given.stdout.trim());
      expect(enrolled.status).toBe(200);
      const { events } = (await orgApi(back, 'GET', '/audit-events')).json as {
        events: { type: string; actor_id: string | null; details: Record<string, unknown> }[];
      };
      const operators = events.filter(({ details }) => details['by'] === 'operator');
      expect(operators).toMatchObject([
        { type: 'admin_promote', actor_id: null, details: { email: `bob@${domain}` } },
        { type: 'enrollment_pass_created', actor_id: null, details: { email: address } },
      ]);
    } finally {
      await own.close();
      await database.drop();
    }
  });
});
