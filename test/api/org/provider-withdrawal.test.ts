import type { EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { addMember, idOf } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';
import {
  allow,
  enrolledThrough,
  eventsOf,
  founded,
  providersOf,
  withdraw,
} from '../../support/two-providers.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ furtherProviders: ['other'] });
});
afterAll(() => app.close());

const lockUser = (tx: EntityManager, id: string) =>
  tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [id]);

const isLoggedIn = async (browser: Client) => (await browser.get('/v1/keys')).status === 200;

/**
 * Creates an organization that accepts two providers: ada signed in at `demo`, and bob at `other`.
 */
async function twoProviders() {
  const organization = await founded(app);
  const { founder, address } = organization;
  await allow(founder.client, 'other');
  const bob = await enrolledThrough(app, address('bob'), 'other');
  return { ...organization, ada: founder.client, bob, bobId: await idOf(app, address('bob')) };
}

/**
 * Enrolls a member by `demo`, and then signs in as the same member by `other`, for which the key is
 * the proof.
 */
async function boundToBoth(email: string) {
  const both = await app.enrolled(email);
  await both.client.signIn(email, '/', 'other');
  return both;
}

describe('the withdrawal of an identity provider', () => {
  it('ends what its page said it would, and neither counts what has expired', async () => {
    const { ada, bob, bobId } = await twoProviders();
    const issue = () => bob.client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const { serial } = (await issue()).json;
    expect((await issue()).status).toBe(200);
    await rows(
      app.dataSource,
      `UPDATE ssh_certificates SET valid_after = now() - interval '2 hours', valid_before = now() - interval '1 hour'
       WHERE serial = $1`,
      [serial],
    );
    const further = app.client();
    expect((await further.logIn(bob.key)).status).toBe(200);
    await rows(
      app.dataSource,
      `UPDATE sessions SET expires_at = now() - interval '1 hour'
       WHERE id = (SELECT id FROM sessions WHERE user_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1)`,
      [bobId],
    );
    const other = (await providersOf(ada)).find(({ provider }) => provider === 'other');

    const page = await ada.get(`/admin/providers/${other?.id}`);
    const answer = await withdraw(ada, 'other');

    expect(page.text).toContain('1 member loses access: 1 session and 1 SSH certificate.');
    expect(answer.json.ended).toEqual({ users: 1, sessions: 1, certificates: 1 });
  });

  it('ends what users hold who are bound through it alone, and nothing of any other user', async () => {
    const { ada, bob, bobId, address, domain } = await twoProviders();
    const carol = await boundToBoth(address('carol'));
    const dave = await app.enrolled(address('dave'));
    const eve = await addMember(app, address('ada'), address('eve'));
    const neighbour = await twoProviders();
    const issued = await bob.client.post('/v1/credentials/ssh', {
      public_key: newPublicKeyLine(),
    });
    const kept = await carol.client.post('/v1/credentials/ssh', {
      public_key: newPublicKeyLine(),
    });

    const answer = await withdraw(ada, 'other');

    expect([answer.status, answer.json]).toEqual([
      200,
      {
        users: 1,
        sessions_revoked: 1,
        certificates_revoked: 1,
        github_tokens_revoked: 0,
        ended: { users: 1, sessions: 1, certificates: 1 },
      },
    ]);
    expect(await isLoggedIn(bob.client)).toBe(false);
    for (const client of [ada, carol.client, dave.client, neighbour.bob.client]) {
      expect(await isLoggedIn(client)).toBe(true);
    }
    expect(await count(app.dataSource, 'users WHERE id = $1 AND active', [eve])).toBe(1);
    const certificates = await rows(
      app.dataSource,
      'SELECT serial, revoke_reason, revoked_by FROM ssh_certificates WHERE serial = ANY ($1) ORDER BY serial',
      [[issued.json.serial, kept.json.serial]],
    );
    const admin = await idOf(app, address('ada'));
    expect(certificates).toEqual([
      {
        serial: issued.json.serial,
        revoke_reason: 'identity provider withdrawn',
        revoked_by: admin,
      },
      { serial: kept.json.serial, revoke_reason: null, revoked_by: null },
    ]);
    expect((await providersOf(ada)).map(({ provider }) => provider)).toEqual(['demo']);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [bobId])).toBe(0);
    expect(await eventsOf(app, domain, 'org_provider_withdrawn')).toEqual([
      {
        actor: address('ada'),
        subject: null,
        details: expect.objectContaining({
          provider: 'other',
          users: 1,
          sessions: 1,
          certificates: 1,
        }),
      },
    ]);
    const unbound = await eventsOf(app, domain, 'identity_unbound');
    expect(unbound.map(({ subject, details }) => [subject, details['access_ended']])).toEqual([
      [address('bob'), true],
      [address('carol'), false],
    ]);
  });

  it('leaves a user without a login by key and without that provider, until an accepted one binds the user', async () => {
    const { ada, bob, bobId, address } = await twoProviders();
    await withdraw(ada, 'other');
    const browser = app.client();
    const refused = await browser.logIn(bob.key);
    expect([refused.status, refused.json.code]).toEqual([403, 'sign_in_refused']);
    expect((await browser.signIn(address('bob'), '/', 'other')).status).toBe(403);
    expect((await browser.signIn(address('bob'))).url.pathname).toBe('/login');
    expect((await browser.logIn(bob.key)).status).toBe(200);
    expect(await idOf(app, address('bob'))).toBe(bobId);
    expect(await isLoggedIn(browser)).toBe(true);
  });

  it('is refused of the own provider of the admin, and of the last one', async () => {
    const { ada, bob, bobId, domain } = await twoProviders();
    const own = await withdraw(ada, 'demo');
    expect([own.status, own.json.code]).toEqual([409, 'own_provider']);
    await app.dataSource.query('UPDATE users SET is_org_admin = true WHERE id = $1', [bobId]);
    expect((await withdraw(bob.client, 'other')).json.code).toBe('own_provider');
    expect((await withdraw(bob.client, 'demo')).status).toBe(200);
    expect(await isLoggedIn(ada)).toBe(false);
    const last = await withdraw(bob.client, 'other');
    expect([last.status, last.json.code]).toEqual([409, 'last_provider']);
    expect(await isLoggedIn(bob.client)).toBe(true);
    expect(await eventsOf(app, domain, 'org_provider_withdrawn')).toHaveLength(1);
  });

  it('leaves one of two providers when 20 withdrawals of both come at once', async () => {
    const { ada, founder, address, domain } = await twoProviders();
    await ada.signIn(address('ada'), '/', 'other');
    expect((await ada.logIn(founder.key)).status).toBe(200);
    const listed = await providersOf(ada);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => withdraw(ada, listed[index % 2]?.provider ?? '')),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 404, 409]));
    expect(await providersOf(ada)).toHaveLength(1);
    expect(await eventsOf(app, domain, 'org_provider_withdrawn')).toHaveLength(1);
    expect(await isLoggedIn(ada)).toBe(true);
  });

  it('ends a session that a sign-in opens at the same moment', async () => {
    const { ada, bobId, address } = await twoProviders();
    const browser = app.client();
    const { signIn, withdrawal } = await app.dataSource.transaction(async (tx) => {
      await lockUser(tx, bobId);
      const signingIn = browser.signIn(address('bob'), '/', 'other');
      await untilWaiting(app.dataSource, 1);
      const withdrawing = withdraw(ada, 'other');
      await untilWaiting(app.dataSource, 2);
      return { signIn: signingIn, withdrawal: withdrawing };
    });
    expect((await signIn).status).toBe(200);
    expect((await withdrawal).json.sessions_revoked).toBe(2);
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [bobId])).toBe(0);
  });

  it('refuses a sign-in that comes while it runs', async () => {
    const { ada, bobId, address } = await twoProviders();
    const browser = app.client();
    const { signIn, withdrawal } = await app.dataSource.transaction(async (tx) => {
      await lockUser(tx, bobId);
      const withdrawing = withdraw(ada, 'other');
      await untilWaiting(app.dataSource, 1);
      const signingIn = browser.signIn(address('bob'), '/', 'other');
      await untilWaiting(app.dataSource, 2);
      return { signIn: signingIn, withdrawal: withdrawing };
    });
    expect((await withdrawal).status).toBe(200);
    expect((await signIn).status).toBe(403);
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [bobId])).toBe(0);
  });

  it('ends the session of a member whom a sign-in binds at the same moment', async () => {
    const { ada, address } = await twoProviders();
    const eve = await addMember(app, address('ada'), address('eve'));
    const { signIn, withdrawal } = await app.dataSource.transaction(async (tx) => {
      await lockUser(tx, eve);
      const signingIn = app.client().signIn(address('eve'), '/', 'other');
      await untilWaiting(app.dataSource, 1);
      const withdrawing = withdraw(ada, 'other');
      await untilWaiting(app.dataSource, 2);
      return { signIn: signingIn, withdrawal: withdrawing };
    });
    expect((await signIn).status).toBe(200);
    expect((await withdrawal).json).toMatchObject({ users: 2, sessions_revoked: 2 });
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [eve])).toBe(0);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [eve])).toBe(0);
  });

  it('refuses a login by key that waits for it', async () => {
    const { ada, bob, bobId } = await twoProviders();
    const browser = app.client();
    const { logIn, withdrawal } = await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM sessions WHERE user_id = $1 FOR UPDATE', [bobId]);
      const withdrawing = withdraw(ada, 'other');
      await untilWaiting(app.dataSource, 1);
      const loggingIn = browser.logIn(bob.key);
      await untilWaiting(app.dataSource, 2);
      return { logIn: loggingIn, withdrawal: withdrawing };
    });
    expect((await withdrawal).status).toBe(200);
    expect((await logIn).json.code).toBe('sign_in_refused');
    expect(await count(app.dataSource, 'sessions WHERE user_id = $1', [bobId])).toBe(0);
  });

  it('refuses the enrollment of a newcomer who signed in through it before', async () => {
    const { ada, address } = await twoProviders();
    const newcomer = app.client();
    expect((await newcomer.signIn(address('new'), '/', 'other')).status).toBe(200);
    await withdraw(ada, 'other');
    const answer = await newcomer.enroll(app.newKey());
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
    expect(await count(app.dataSource, 'users WHERE email = $1', [address('new')])).toBe(0);
  });

  it('ends the access of an unenrolled member whose bootstrap session it finds', async () => {
    const { ada, address } = await twoProviders();
    const eve = await addMember(app, address('ada'), address('eve'));
    const browser = app.client();
    await browser.signIn(address('eve'), '/', 'other');
    await withdraw(ada, 'other');
    const answer = await browser.post('/enroll/webauthn/start', {});
    expect(answer.status).toBe(401);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [eve])).toBe(0);
  });

  it('changes nothing when the admin is demoted while it waits', async () => {
    const { ada, bob, bobId, address } = await twoProviders();
    const admin = await idOf(app, address('ada'));
    const { withdrawal } = await app.dataSource.transaction(async (tx) => {
      // Both rows are locked first. If the withdrawal held the row of the admin, the two
      // transactions would deadlock, and PostgreSQL could end this one.
      await lockUser(tx, admin);
      await lockUser(tx, bobId);
      const withdrawing = withdraw(ada, 'other');
      await untilWaiting(app.dataSource, 1);
      await tx.query('UPDATE users SET is_org_admin = false WHERE id = $1', [admin]);
      return { withdrawal: withdrawing };
    });
    expect((await withdrawal).json.code).toBe('admin_required');
    expect(await isLoggedIn(bob.client)).toBe(true);
  });

  const many = atScale({ small: 1_000, full: 5_000 });
  it(`of ${many.toLocaleString('en')} users is one transaction within the time of a request`, async () => {
    const each = atScale({ small: 1, full: 10 }); // certificates per user
    const { ada, bobId, domain } = await twoProviders();
    const other = (await providersOf(ada)).find(({ provider }) => provider === 'other');
    await app.dataSource.query(
      `WITH made AS (
         INSERT INTO users (id, org_id, email)
         SELECT gen_random_uuid(), u.org_id, 'user-' || n || '@' || $2
         FROM users u, generate_series(1, $5::int) AS n WHERE u.id = $1
         RETURNING id
       ), bound AS (
         INSERT INTO identities (issuer, subject, user_id) SELECT $3, 'many ' || id, id FROM made
       ), opened AS (
         INSERT INTO sessions (id, token_hash, level, user_id, expires_at)
         SELECT gen_random_uuid(), sha256(id::text::bytea), 'bootstrap', id, now() + interval '1 hour' FROM made
         RETURNING id, user_id
       )
       INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                     valid_after, valid_before)
       SELECT nextval('ssh_certificate_serial'), o.user_id, o.id, 'k', '{p}', 'SHA256:k', 'SHA256:ca', now(),
              now() + interval '1 hour'
       FROM opened o, generate_series(1, CASE WHEN o.id = (SELECT id FROM opened LIMIT 1) THEN $4::int + 15 ELSE $4 END)`,
      [bobId, domain, other?.issuer, each, many],
    );
    const begun = performance.now();
    const answer = await withdraw(ada, 'other');
    const seconds = (performance.now() - begun) / 1000;

    expect(answer.json).toMatchObject({
      users: many + 1,
      sessions_revoked: many + 1,
      certificates_revoked: many * each + 15,
    });
    expect(seconds).toBeLessThan(30);
    expect(await eventsOf(app, domain, 'identity_unbound')).toHaveLength(many + 1);
  });
});
