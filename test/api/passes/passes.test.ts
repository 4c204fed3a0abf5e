import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { addMember, orgApi } from '../../support/org-api.js';
import {
  completeWith,
  enrollWith,
  givePass,
  passFor,
  passGround,
  signedIn,
  startWith,
  type PassGround,
} from '../../support/passes.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

let grounds = 0;
const ground = () => passGround(app, `passes-${(grounds += 1)}.example`);

const keysOfUser = (id: string) => count(app.dataSource, 'authenticators WHERE user_id = $1', [id]);
const passRows = (id: string) =>
  count(app.dataSource, 'enrollment_passes WHERE user_id = $1', [id]);
const withdrawPass = (admin: Client, id: string) =>
  orgApi(admin, 'DELETE', `/members/${id}/enrollment-passes`);
const liftDemand = (admin: Client, id: string) =>
  orgApi(admin, 'DELETE', `/members/${id}/enrollment-passes/demand`);
const expire = (id: string) =>
  rows(
    app.dataSource,
    `UPDATE enrollment_passes SET expires_at = now() - interval '1 second' WHERE user_id = $1`,
    [id],
  );

const events = (id: string) =>
  rows<{ type: string; actor_id: string | null; org_id: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT type, actor_id, org_id, details FROM audit_events
     WHERE subject_id = $1 AND type LIKE 'enrollment%' ORDER BY id`,
    [id],
  );

/** The refusal of an enrollment that needs a pass and has none. */
const REQUIRED = { status: 403, json: { code: 'enrollment_pass_required' } };

/** The refusal of every pass that is not the valid pass of the user. */
const INVALID = { status: 403, json: { code: 'enrollment_pass_invalid' } };

describe('a re-enrollment pass', () => {
  it('brings back a member from before SCIM where SCIM alone makes members, and nothing else does', async () => {
    const { ada, ids, domain } = await ground();
    const made = await orgApi(ada, 'POST', '/scim-tokens', { description: 'IdP' });
    expect(made.json).toMatchObject({ membership: 'scim_only' });
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    expect(await enrollWith(app, browser, app.newKey(), `${pass}x`)).toMatchObject(INVALID);
    expect((await enrollWith(app, browser, app.newKey(), pass)).status).toBe(200);
    expect((await browser.get('/v1/keys')).json.keys).toHaveLength(1);

    await orgApi(ada, 'POST', `/members/${ids.bob}/revoke-credentials`);
    const again = await signedIn(app, `bob@${domain}`);
    expect(await enrollWith(app, again, app.newKey())).toMatchObject({
      status: 403,
      json: { code: 'enrollment_refused' },
    });
    expect(await keysOfUser(ids.bob)).toBe(0);
  });

  it('ends the keys, sessions and certificates in the transaction that makes it, and is shown once', async () => {
    const { ada, bob, bobKey, ids, domain } = await ground();
    const body = { public_key: newPublicKeyLine() };
    const { serial } = (await bob.post('/v1/credentials/ssh', body)).json;
    const made = await givePass(ada, ids.bob);
    expect(made).toMatchObject({
      status: 201,
      json: { ended: { sessions: 1, certificates: 1, keys: 1, github_tokens: 0 } },
    });
    const { pass, expires_at: expiresAt } = made.json as { pass: string; expires_at: string };
    expect(Buffer.from(pass.replace('svc_pass_', ''), 'base64url')).toHaveLength(32);
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 24 * 3_600_000)).toBeLessThan(60_000);

    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await app.client().logIn(bobKey)).status).toBe(400);
    const revoked = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(revoked.json).toMatchObject({ revoked: true });

    const [row] = await rows<{ hash: Buffer; created_by: string }>(
      app.dataSource,
      'SELECT hash, created_by FROM enrollment_passes WHERE user_id = $1',
      [ids.bob],
    );
    expect(row?.hash).toEqual(createHash('sha256').update(pass).digest());
    expect(row?.created_by).toBe(ids.ada);
    const list = await orgApi(ada, 'GET', `/members/${ids.bob}/enrollment-passes`);
    expect(list.json.passes).toEqual([
      {
        created_by: ids.ada,
        created_at: expect.any(String),
        expires_at: expiresAt,
        withdrawn: false,
      },
    ]);
    const [event] = (await events(ids.bob)).slice(-1);
    expect(event).toMatchObject({
      type: 'enrollment_pass_created',
      actor_id: ids.ada,
      details: { email: `bob@${domain}`, sessions: 1, certificates: 1, keys: 1 },
    });
    expect(JSON.stringify(await rows(app.dataSource, 'SELECT * FROM audit_events'))).not.toContain(
      pass,
    );
    expect(app.log.join('\n')).not.toContain(pass);
  });

  it('is what the sign-in enrolls a key with, and works once', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    expect(await startWith(browser)).toMatchObject({
      status: 403,
      json: { code: 'enrollment_pass_required' },
    });
    const enrolled = await enrollWith(app, browser, app.newKey(), ` ${pass}\n`);
    expect(enrolled.status).toBe(200);
    expect((await browser.get('/v1/keys')).json.keys).toHaveLength(1);
    expect((await events(ids.bob)).map(({ type }) => type).slice(-2)).toEqual([
      'enrollment_pass_used',
      'enrollment',
    ]);

    // The admin removes the keys again, this time without a new pass. The used pass is refused, and
    // an enrollment needs no pass.
    expect((await orgApi(ada, 'POST', `/members/${ids.bob}/revoke-credentials`)).status).toBe(200);
    const again = await signedIn(app, `bob@${domain}`);
    expect(await startWith(again, pass)).toMatchObject(INVALID);
    expect(await keysOfUser(ids.bob)).toBe(0);
    expect((await enrollWith(app, again, app.newKey())).status).toBe(200);
  });

  it('is refused to another member, another organization and a sign-in without an account, and stays valid', async () => {
    const { ada, ids, domain } = await ground();
    const other = await ground();
    const pass = await passFor(ada, ids.bob);
    const eve = `eve@${domain}`;
    const eveId = await addMember(app, `ada@${domain}`, eve);
    await passFor(other.ada, other.ids.bob);
    const strangers = [
      await signedIn(app, eve),
      await signedIn(app, `bob@${other.domain}`),
      await signedIn(app, `new@${domain}`),
      await signedIn(app, 'new@elsewhere-passes.example'),
    ];
    for (const browser of strangers) {
      expect(await enrollWith(app, browser, app.newKey(), pass)).toMatchObject(INVALID);
    }
    expect(await keysOfUser(eveId)).toBe(0);
    expect(await keysOfUser(other.ids.bob)).toBe(0);
    const bob = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, bob, app.newKey(), pass)).status).toBe(200);
  });

  it('is refused when it is late, also between the two steps, and the sign-in alone still enrolls nothing', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const started = await startWith(browser, pass);
    expect(started.status).toBe(200);
    await expire(ids.bob);
    expect(await completeWith(app, browser, app.newKey(), started)).toMatchObject(INVALID);
    expect(await keysOfUser(ids.bob)).toBe(0);
    expect(await enrollWith(app, browser, app.newKey(), pass)).toMatchObject(INVALID);
    expect(await keysOfUser(ids.bob)).toBe(0);
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await enrollWith(app, browser, app.newKey())).toMatchObject(REQUIRED);
    const next = await passFor(ada, ids.bob);
    const again = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, again, app.newKey(), next)).status).toBe(200);
    expect(await passRows(ids.bob)).toBe(0);
  });

  it('ends when another one is made, also for a ceremony that began with it', async () => {
    const { ada, ids, domain } = await ground();
    const first = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const started = await startWith(browser, first);
    const second = await passFor(ada, ids.bob);
    expect((await completeWith(app, browser, app.newKey(), started)).status).toBe(400);
    const again = await signedIn(app, `bob@${domain}`);
    expect(await enrollWith(app, again, app.newKey(), first)).toMatchObject(INVALID);
    expect(await keysOfUser(ids.bob)).toBe(0);
    expect((await enrollWith(app, again, app.newKey(), second)).status).toBe(200);
  });

  it('that is withdrawn is refused, and the sign-in alone enrolls nothing, also after its time', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const started = await startWith(browser, pass);
    expect((await withdrawPass(ada, ids.bob)).status).toBe(204);
    expect((await withdrawPass(ada, ids.bob)).status).toBe(404);
    expect(await completeWith(app, browser, app.newKey(), started)).toMatchObject(INVALID);
    expect(await enrollWith(app, browser, app.newKey(), pass)).toMatchObject(INVALID);
    expect(await enrollWith(app, browser, app.newKey())).toMatchObject(REQUIRED);
    await expire(ids.bob);
    expect(await enrollWith(app, browser, app.newKey())).toMatchObject(REQUIRED);
    expect(await keysOfUser(ids.bob)).toBe(0);
    const list = await orgApi(ada, 'GET', `/members/${ids.bob}/enrollment-passes`);
    expect(list.json).toMatchObject({ passes: [{ withdrawn: true }], demanded: true });
    expect((await events(ids.bob)).map(({ type }) => type)).toContain('enrollment_pass_revoked');
    const next = await passFor(ada, ids.bob);
    const again = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, again, app.newKey(), next)).status).toBe(200);
  });

  it.each(['deactivate', 'revoke-credentials'])('ends by the act %s of an admin', async (act) => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    expect((await orgApi(ada, 'POST', `/members/${ids.bob}/${act}`)).status).toBe(200);
    await orgApi(ada, 'POST', `/members/${ids.bob}/activate`);
    const browser = await signedIn(app, `bob@${domain}`);
    expect(await enrollWith(app, browser, app.newKey(), pass)).toMatchObject(INVALID);
    expect(await keysOfUser(ids.bob)).toBe(0);
  });

  it('goes with the account of a member who is removed', async () => {
    const { ada, ids } = await ground();
    await passFor(ada, ids.bob);
    expect((await orgApi(ada, 'POST', `/members/${ids.bob}/remove`)).status).toBe(204);
    expect(await passRows(ids.bob)).toBe(0);
  });

  it('has one winner of 20 enrollments at once', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const ready = [];
    for (let n = 0; n < 20; n += 1) {
      const browser = await signedIn(app, `bob@${domain}`);
      ready.push({ browser, started: await startWith(browser, pass) });
    }
    expect(ready.map(({ started }) => started.status)).toEqual(ready.map(() => 200));
    const answers = await Promise.all(
      ready.map(({ browser, started }) => completeWith(app, browser, app.newKey(), started)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await keysOfUser(ids.bob)).toBe(1);
    expect(await passRows(ids.bob)).toBe(0);
    const used = (await events(ids.bob)).filter(({ type }) => type === 'enrollment_pass_used');
    expect(used).toHaveLength(1);
  });

  it('stays valid when the key is refused after it was right', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const started = await startWith(browser, pass);
    const taken = app.newKey();
    const foreign = await browser.post('/enroll/webauthn/complete', {
      state: started.json.state,
      credential: taken.create(started.json.publicKey, 'https://evil.example'),
    });
    expect(foreign.status).toBe(400);
    expect(await keysOfUser(ids.bob)).toBe(0);
    expect((await enrollWith(app, browser, app.newKey(), pass)).status).toBe(200);
  });
});

describe('wrong passes', () => {
  it('get one answer, are recorded for the admins, and run into the limit of the network', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const wrong = [
      'x',
      pass.slice(0, -1),
      `${pass}A`,
      'svc_pass_'.padEnd(52, 'A'),
      '💥'.repeat(60),
    ];
    const answers = [];
    for (const text of wrong) answers.push(await startWith(browser, text));
    const bodies = answers.map(({ status, json }) => ({ status, ...json, instance: undefined }));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(answers[0]).toMatchObject(INVALID);
    const refused = (await events(ids.bob)).filter(
      ({ type, details }) =>
        type === 'enrollment_refused' && details['code'] === 'enrollment_pass_invalid',
    );
    expect(refused).toHaveLength(wrong.length);
    const statuses = [];
    for (let n = 0; n < 12; n += 1) {
      statuses.push((await browser.post('/enroll/webauthn/start', { pass: 'x' })).status);
    }
    expect(statuses).toContain(429);
    expect((await enrollWith(app, browser, app.newKey(), pass)).status).toBe(200);
  });

  it('a body that is no text is 400, and a long one too', async () => {
    const { ada, ids, domain } = await ground();
    await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    for (const pass of [5, {}, [], 'x'.repeat(257)]) {
      const answer = await browser.post('/enroll/webauthn/start', { pass });
      expect(answer.status).toBe(400);
    }
  });
});

describe('who may give a pass', () => {
  it('an admin may not give one to oneself', async () => {
    const { ada, ids } = await ground();
    expect(await givePass(ada, ids.ada)).toMatchObject({
      status: 409,
      json: { code: 'own_account' },
    });
    expect(await keysOfUser(ids.ada)).toBe(1);
    expect(await passRows(ids.ada)).toBe(0);
  });

  it('a member who is no admin, and a demoted admin, may not', async () => {
    const { ada, bob, ids } = await ground();
    expect(await givePass(bob, ids.ada)).toMatchObject({ status: 403 });
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = true WHERE id = $1', [ids.bob]);
    await orgApi(bob, 'POST', `/members/${ids.ada}/demote`);
    expect(await givePass(ada, ids.bob)).toMatchObject({ status: 403 });
    expect(await passRows(ids.bob)).toBe(0);
    expect(await keysOfUser(ids.bob)).toBe(1);
  });

  it('an admin needs a touch of the last five minutes, to give and to withdraw', async () => {
    const { ada, adaKey, ids, domain } = await ground();
    await touchedAgo(app, `ada@${domain}`, 301);
    const stale = { status: 401, json: { code: 'insufficient_user_authentication' } };
    expect(await givePass(ada, ids.bob)).toMatchObject(stale);
    expect(await keysOfUser(ids.bob)).toBe(1);
    await ada.logIn(adaKey);
    await passFor(ada, ids.bob);
    await touchedAgo(app, `ada@${domain}`, 301);
    expect(await withdrawPass(ada, ids.bob)).toMatchObject(stale);
  });

  it('an admin who saw another state of the member changes nothing', async () => {
    const { ada, ids, domain } = await ground();
    const path = `/members/${ids.bob}`;
    const act = (method: string, tag: string) =>
      orgApi(ada, method, `${path}/enrollment-passes`, undefined, { 'if-match': tag });
    const tag = async () => (await orgApi(ada, 'GET', path)).headers.get('etag') ?? '';
    const seen = await tag();
    await orgApi(ada, 'POST', `${path}/promote`); // another admin changes the member meanwhile
    const stale = { status: 412, json: { code: 'precondition_failed' } };
    expect(await act('POST', seen)).toMatchObject(stale);
    expect([await keysOfUser(ids.bob), await passRows(ids.bob)]).toEqual([1, 0]);
    const given = await act('POST', await tag());
    expect(given.status).toBe(201);
    expect(await act('DELETE', seen)).toMatchObject(stale);
    const browser = await signedIn(app, `bob@${domain}`);
    expect((await enrollWith(app, browser, app.newKey(), given.json.pass)).status).toBe(200);
  });

  it('an admin of another organization finds no such member', async () => {
    const { ids, bob } = await ground();
    const other = await ground();
    for (const id of [ids.bob, '0', 'x'.repeat(40)]) {
      expect((await givePass(other.ada, id)).status).toBe(404);
      expect((await withdrawPass(other.ada, id)).status).toBe(404);
      const list = await orgApi(other.ada, 'GET', `/members/${id}/enrollment-passes`);
      expect(list.status).toBe(404);
    }
    expect((await bob.get('/v1/keys')).status).toBe(200);
  });

  it('a request from another origin, or without one, changes nothing', async () => {
    const { ada, ids } = await ground();
    for (const origin of ['https://evil.example', '']) {
      const path = `/api/v1/org/members/${ids.bob}/enrollment-passes`;
      const answer = await ada.send('POST', path, { headers: { origin } });
      expect(answer).toMatchObject({ status: 403, json: { code: 'invalid_origin' } });
    }
    expect(await keysOfUser(ids.bob)).toBe(1);
  });

  it('a deactivated member gets none', async () => {
    const { ada, ids } = await ground();
    await orgApi(ada, 'POST', `/members/${ids.bob}/deactivate`);
    expect(await givePass(ada, ids.bob)).toMatchObject({
      status: 403,
      json: { code: 'account_inactive' },
    });
    expect(await keysOfUser(ids.bob)).toBe(1);
    expect(await passRows(ids.bob)).toBe(0);
  });
});

describe('the page /enroll', () => {
  it('asks for the pass where one is demanded, and only there', async () => {
    const { ada, ids, domain } = await ground();
    await orgApi(ada, 'POST', `/members/${ids.bob}/revoke-credentials`);
    const before = await signedIn(app, `bob@${domain}`);
    expect((await before.get('/enroll')).text).not.toContain('name="pass"');
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const page = await browser.get('/enroll');
    expect(page.text).toContain('name="pass"');
    expect(page.text).not.toContain(pass);
    await expire(ids.bob);
    expect((await browser.get('/enroll')).text).toContain('name="pass"');
    await liftDemand(ada, ids.bob);
    expect((await browser.get('/enroll')).text).not.toContain('name="pass"');
  });
});

describe('the demand for a pass', () => {
  it.each(['a valid pass', 'an expired pass', 'a withdrawn pass'])(
    'is lifted by an admin after %s: the sign-in alone enrolls, and the pass is worth nothing',
    async (state) => {
      const { ada, ids, domain } = await ground();
      const pass = await passFor(ada, ids.bob);
      if (state === 'an expired pass') await expire(ids.bob);
      if (state === 'a withdrawn pass') await withdrawPass(ada, ids.bob);
      const page = (await ada.get(`/admin/members/${ids.bob}`)).text;
      expect(page).toContain('data-act="lift-demand"');
      expect(page).toContain('who knows the password');
      expect((await liftDemand(ada, ids.bob)).status).toBe(204);
      expect((await liftDemand(ada, ids.bob)).status).toBe(404);
      const list = await orgApi(ada, 'GET', `/members/${ids.bob}/enrollment-passes`);
      expect(list.json).toEqual({ passes: [], demanded: false });
      const browser = await signedIn(app, `bob@${domain}`);
      expect(await enrollWith(app, browser, app.newKey(), pass)).toMatchObject(INVALID);
      expect((await enrollWith(app, browser, app.newKey())).status).toBe(200);
      expect(
        (await events(ids.bob)).filter(({ type }) => type === 'enrollment_pass_waived'),
      ).toEqual([
        {
          type: 'enrollment_pass_waived',
          actor_id: ids.ada,
          org_id: expect.any(String),
          details: { email: `bob@${domain}` },
        },
      ]);
      expect((await ada.get(`/admin/members/${ids.bob}`)).text).not.toContain('lift-demand');
    },
  );

  it('is not lifted without a touch, by a member, by an admin of another organization, or in a state not seen', async () => {
    const { ada, adaKey, bob, ids, domain } = await ground();
    const other = await ground();
    const carolId = await addMember(app, `ada@${domain}`, `carol@${domain}`);
    await passFor(ada, carolId);
    await touchedAgo(app, `ada@${domain}`, 301);
    expect(await liftDemand(ada, carolId)).toMatchObject({
      status: 401,
      json: { code: 'insufficient_user_authentication' },
    });
    await ada.logIn(adaKey);
    expect((await liftDemand(bob, carolId)).status).toBe(403);
    expect((await liftDemand(other.ada, carolId)).status).toBe(404);
    expect((await liftDemand(ada, ids.ada)).status).toBe(409);
    const path = `/members/${carolId}/enrollment-passes/demand`;
    const stale = await orgApi(ada, 'DELETE', path, undefined, { 'if-match': 'W/"another"' });
    expect(stale).toMatchObject({ status: 412, json: { code: 'precondition_failed' } });
    expect(await passRows(carolId)).toBe(1);
  });

  it('has one winner of 20 who lift it at once, in the audit log, too', async () => {
    const { ada, ids } = await ground();
    await passFor(ada, ids.bob);
    const answers = await Promise.all(Array.from({ length: 20 }, () => liftDemand(ada, ids.bob)));
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
    const waived = (await events(ids.bob)).filter(({ type }) => type === 'enrollment_pass_waived');
    expect(waived).toHaveLength(1);
  });

  it('comes back with the upgrade for users whose pass expired unused, and for no other', async () => {
    const places = await Promise.all(Array.from({ length: 4 }, ground));
    const [unused, used, renewed, revoked] = places as [
      PassGround,
      PassGround,
      PassGround,
      PassGround,
    ];
    for (const { ada, ids } of places) await passFor(ada, ids.bob);
    for (const each of [used, renewed]) {
      const pass = await passFor(each.ada, each.ids.bob);
      const browser = await signedIn(app, `bob@${each.domain}`);
      await enrollWith(app, browser, app.newKey(), pass);
    }
    // The user of `renewed` has used the pass, and then loses the key by an action that demands no
    // pass. Then the events of enrollments are deleted, as after their retention.
    await orgApi(renewed.ada, 'POST', `/members/${renewed.ids.bob}/revoke-credentials`);
    await orgApi(revoked.ada, 'POST', `/members/${revoked.ids.bob}/revoke-credentials`);
    const ids = places.map((each) => each.ids.bob);
    await rows(
      app.dataSource,
      `DELETE FROM audit_events WHERE class = 'auth' AND subject_id = ANY ($1::uuid[])`,
      [ids],
    );
    await rows(app.dataSource, 'DELETE FROM enrollment_passes WHERE user_id = ANY ($1::uuid[])', [
      ids,
    ]);
    const upgrade = await readFile(
      'migrations/1763790060100-lasting-demand-for-a-pass.sql',
      'utf8',
    );
    await app.dataSource.query(upgrade);
    expect(await Promise.all(ids.map(passRows))).toEqual([1, 0, 0, 1]);
    const browser = await signedIn(app, `bob@${unused.domain}`);
    expect(await enrollWith(app, browser, app.newKey())).toMatchObject(REQUIRED);
  });

  it('meets a use of the pass at the same time: one of both has an effect', async () => {
    const { ada, ids, domain } = await ground();
    const pass = await passFor(ada, ids.bob);
    const browser = await signedIn(app, `bob@${domain}`);
    const started = await startWith(browser, pass);
    const [lifted, enrolled] = await Promise.all([
      liftDemand(ada, ids.bob),
      completeWith(app, browser, app.newKey(), started),
    ]);
    expect([lifted.status, enrolled.status].toSorted()).toEqual(
      enrolled.status === 200 ? [200, 404] : [204, 403].toSorted(),
    );
  });
});
