import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessRevocation } from '../../../src/domain/access-revocation/access-revocation.service.js';
import { EVERY_SCOPE } from '../../../src/domain/access-revocation/revocable.js';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { addKey, keysOf } from '../../support/keys.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { enrollWith, passFor } from '../../support/passes.js';
import { rows } from '../../support/rows.js';
import { foundOrganization } from '../../support/scim-organization.js';
import { signInTo } from '../../support/signed-in-application.js';
import { createStream, newProgram, signalsOf, sendSsf } from '../../support/signal-streams.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_CLEANUP_INTERVAL: '0' } });
});
afterAll(() => app.close());

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type';
const CAUSE = { reason: 'a test', revokedBy: 'operator' };
let grounds = 0;

/**
 * Creates an admin, and a member who is signed in to an application with a stream. The receiver
 * polls the stream.
 */
async function newGround(more: Readonly<Record<string, unknown>> = {}) {
  grounds += 1;
  const domain = `signals-${grounds}.example`;
  const admin = await app.enrolled(`ada@${domain}`);
  const member = await app.enrolled(`bob@${domain}`);
  const program = await newProgram(app, admin.client);
  const streamId = await createStream(program, undefined, more);
  await signInTo(app, member.client, program.application);
  const userId = await idOf(app, `bob@${domain}`);
  const told = async () =>
    (await signalsOf(app, streamId, userId)).map(({ type, body }) => [
      type,
      body['initiating_entity'],
      ...(body['change_type'] === undefined ? [] : [body['change_type']]),
    ]);
  return { domain, admin: admin.client, ...member, program, streamId, userId, told };
}

const addressed = (browser: Client, method: string, path: string, body?: unknown) =>
  browser.send(method, path, { address: newAddress(), ...(body === undefined ? {} : { body }) });

describe('session-revoked is queued', () => {
  it('by a logout, with a reason, and names the person alone', async () => {
    const { client, streamId, userId } = await newGround();
    await addressed(client, 'POST', '/logout');
    expect(await signalsOf(app, streamId, userId)).toMatchObject([
      {
        type: 'session-revoked',
        body: {
          initiating_entity: 'user',
          reason_admin: { en: 'The person ended the session.' },
        },
      },
    ]);
  });

  it('once if 20 logouts of a session come at once', async () => {
    const { client, told } = await newGround();
    await Promise.all(
      Array.from({ length: 20 }, () => addressed(client.copy(), 'POST', '/logout')),
    );
    expect(await told()).toEqual([['session-revoked', 'user']]);
  });

  it('by the deletion of a session, and of all others', async () => {
    const { client, key, told, program, userId } = await newGround();
    const [own] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM sessions WHERE user_id = $1',
      [userId],
    );
    const second = app.client();
    await second.logIn(key, { address: newAddress() });
    await signInTo(app, second, program.application);
    expect((await addressed(second, 'DELETE', `/v1/sessions/${own?.id}`)).status).toBe(204);
    expect(await told()).toEqual([['session-revoked', 'user']]);
    await client.logIn(key, { address: newAddress() });
    await addressed(client, 'POST', '/v1/sessions/end-others', {});
    expect(await told()).toEqual([
      ['session-revoked', 'user'],
      ['session-revoked', 'user'],
    ]);
  });

  it('not for a session without a grant of the application, and not by its own time', async () => {
    const { client, key, told, userId } = await newGround();
    const elsewhere = app.client();
    await elsewhere.logIn(key, { address: newAddress() });
    await addressed(elsewhere, 'POST', '/logout');
    expect(await told()).toEqual([]);
    await rows(
      app.dataSource,
      "UPDATE sessions SET expires_at = now() - interval '1 minute' WHERE user_id = $1",
      [userId],
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await told()).toEqual([]);
    expect((await client.get('/account')).status).not.toBe(200);
  });

  it('by the removal of the key that opened it, by the owner and by an admin, with the change of the key', async () => {
    const { domain, admin, client, told, program, userId } = await newGround();
    const spare = app.newKey();
    await addKey(app, client, spare, 'Spare');
    expect(await told()).toEqual([['credential-change', 'user', 'create']]);
    const other = app.client();
    await other.logIn(spare, { address: newAddress() });
    await signInTo(app, other, program.application);
    const spareOf = async () =>
      (await keysOf(app, `bob@${domain}`)).find(({ name }) => name === 'Spare')?.id;
    expect((await addressed(client, 'DELETE', `/v1/keys/${await spareOf()}`)).status).toBe(200);
    expect((await told()).slice(1)).toEqual([
      ['session-revoked', 'user'],
      ['credential-change', 'user', 'revoke'],
    ]);
    await addKey(app, client, app.newKey(), 'Spare');
    const before = (await told()).length;
    const removed = await orgApi(admin, 'DELETE', `/members/${userId}/keys/${await spareOf()}`);
    expect(removed.status).toBeLessThan(300);
    expect((await told()).slice(before)).toEqual([['credential-change', 'admin', 'revoke']]);
  });

  it.each([...EVERY_SCOPE])(
    'by %s, once in a transaction, also if no session is left',
    async (scope) => {
      const { client, told, userId, streamId } = await newGround();
      await addressed(client, 'POST', '/logout');
      await rows(app.dataSource, 'DELETE FROM signal_events WHERE stream_id = $1', [streamId]);
      await app.dataSource.transaction(async (tx) => {
        await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
        const revocation = app.nest.get(AccessRevocation, { strict: false });
        await revocation.end(tx, [{ id: userId }], scope, CAUSE);
      });
      const [first, ...others] = await signalsOf(app, streamId, userId);
      expect(first).toMatchObject({
        type: 'session-revoked',
        body: { initiating_entity: 'admin', reason_admin: { en: 'a test' } },
      });
      expect(others.map(({ type }) => type).filter((type) => type === 'session-revoked')).toEqual(
        [],
      );
      expect((await told()).length).toBeGreaterThan(0);
    },
  );
});

describe('the events of an account are queued in the order in which they happened', () => {
  it.each([
    ['deactivate', ['session-revoked', 'account-disabled']],
    ['remove', ['session-revoked', 'account-purged']],
    ['revoke-credentials', ['session-revoked', 'credential-change']],
  ] as const)('by the act %s of an admin', async (act, types) => {
    const { admin, told, userId } = await newGround();
    expect((await orgApi(admin, 'POST', `/members/${userId}/${act}`)).status).toBeLessThan(300);
    expect((await told()).map(([type, who]) => [type, who])).toEqual(
      types.map((type) => [type, 'admin']),
    );
  });

  it('by the activation of an admin', async () => {
    const { admin, told, userId } = await newGround();
    await orgApi(admin, 'POST', `/members/${userId}/deactivate`);
    const before = (await told()).length;
    await orgApi(admin, 'POST', `/members/${userId}/activate`);
    expect((await told()).slice(before)).toEqual([['account-enabled', 'admin']]);
  });

  it('by SCIM: active false, active true and DELETE', async () => {
    const { admin, scim } = await foundOrganization(app, 'scim-signals.example');
    const made = await scim('POST', '/Users', { userName: 'bob@scim-signals.example' });
    const { id } = made.json as { id: string };
    const program = await newProgram(app, admin.client);
    const streamId = await createStream(program);
    const { client: bob } = await app.enrolled('bob@scim-signals.example');
    await signInTo(app, bob, program.application);
    const replace = (active: boolean) =>
      scim('PATCH', `/Users/${id}`, {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [{ op: 'replace', path: 'active', value: active }],
      });
    expect((await replace(false)).status).toBe(200);
    expect((await replace(true)).status).toBe(200);
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    const told = await signalsOf(app, streamId, id);
    expect(told.map(({ type }) => type)).toEqual([
      'session-revoked',
      'account-disabled',
      'account-enabled',
      'session-revoked',
      'account-purged',
    ]);
    expect(new Set(told.map(({ body }) => body['initiating_entity']))).toEqual(new Set(['admin']));
  });

  it('by a pass of an admin and the key that the person then enrolls', async () => {
    const { domain, admin, told, userId } = await newGround();
    const pass = await passFor(admin, userId);
    expect((await told()).map(([type, , change]) => [type, change])).toEqual([
      ['session-revoked', undefined],
      ['credential-change', 'revoke'],
    ]);
    const browser = app.client();
    await browser.signIn(`bob@${domain}`);
    await enrollWith(app, browser, app.newKey(), pass);
    expect((await told()).at(-1)).toEqual(['credential-change', 'user', 'create']);
  });

  it('never by a transaction that is rolled back', async () => {
    const { told, userId } = await newGround();
    const revocation = app.nest.get(AccessRevocation, { strict: false });
    const seen = await app.dataSource
      .transaction(async (tx) => {
        await tx.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId]);
        await revocation.end(tx, [{ id: userId }], 'account-deactivated', CAUSE);
        await tx.query('UPDATE users SET active = false WHERE id = $1', [userId]);
        const [{ n }] = await tx.query<[{ n: number }]>(
          'SELECT count(*)::int AS n FROM signal_events WHERE subject_id = $1',
          [userId],
        );
        throw new Error(`rolled back with ${n}`);
      })
      .catch((error: Error) => error.message);
    expect(seen).toBe('rolled back with 2');
    expect(await told()).toEqual([]);
  });
});

describe('credential-change says which kind of key', () => {
  it.each(['packed', 'fido-u2f'] as const)('%s', async (attestation) => {
    const { streamId, userId } = await newGround();
    const aaguid = 'c5ef55ff-ad9a-4b9f-b580-adebafe026d0';
    await rows(
      app.dataSource,
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid, user_verification, name)
       VALUES (gen_random_uuid(), $1, decode(md5(random()::text), 'hex'), '', 0, $2, $3, true, 'A key')`,
      [userId, attestation, attestation === 'packed' ? aaguid : null],
    );
    const [made] = await signalsOf(app, streamId, userId);
    expect(made?.body).toEqual({
      change_type: 'create',
      initiating_entity: 'user',
      reason_admin: { en: 'A security key was added.' },
      ...(attestation === 'packed'
        ? { credential_type: 'fido2-roaming', fido2_aaguid: aaguid }
        : { credential_type: 'fido-u2f' }),
    });
  });
});

describe('session-established', () => {
  it('is queued for a stream that asks for it by name alone, once for a session', async () => {
    const asking = await newGround({ events_requested: [`${CAEP}/session-established`] });
    expect(await asking.told()).toEqual([['session-established', 'user']]);
    await signInTo(app, asking.client, asking.program.application);
    expect(await asking.told()).toHaveLength(1);
    const silent = await newGround();
    expect(await silent.told()).toEqual([]);
  });
});

describe('a stream hears', () => {
  it('of no person of another organization, also if both know one address', async () => {
    const one = await newGround();
    const two = await newGround();
    // Inserts a user with the same address into the other organization, as SCIM may create one.
    const address = `bob@${one.domain}`;
    await rows(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, name) SELECT gen_random_uuid(), org_id, $2, 'Bob' FROM users WHERE id = $1`,
      [two.userId, address],
    );
    const [twin] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT t.id FROM users t JOIN users u ON u.org_id = t.org_id WHERE u.id = $1 AND t.email = $2',
      [two.userId, address],
    );
    // Records a sign-in of all three users at both applications, so that only the organization
    // decides who gets events.
    await rows(
      app.dataSource,
      `INSERT INTO client_sign_ins (sid, client_id, user_id)
       SELECT gen_random_uuid(), c, u FROM unnest($1::text[]) c, unnest($2::uuid[]) u`,
      [
        [one.program.application.clientId, two.program.application.clientId],
        [one.userId, two.userId, twin?.id],
      ],
    );
    for (const id of [one.userId, two.userId, twin?.id]) {
      await rows(app.dataSource, 'UPDATE users SET active = false WHERE id = $1', [id]);
    }
    const subjects = async (streamId: string) =>
      (
        await rows<{ subject_id: string }>(
          app.dataSource,
          'SELECT subject_id FROM signal_events WHERE stream_id = $1 ORDER BY id',
          [streamId],
        )
      ).map(({ subject_id }) => subject_id);
    expect(await subjects(one.streamId)).toEqual([one.userId]);
    expect(await subjects(two.streamId)).toEqual([two.userId, twin?.id]);
  });

  it('of no colleague who never signed in to the application', async () => {
    const { domain, admin, streamId } = await newGround();
    await app.enrolled(`eve@${domain}`);
    const eve = await idOf(app, `eve@${domain}`);
    await orgApi(admin, 'POST', `/members/${eve}/remove`);
    expect(await signalsOf(app, streamId)).toEqual([]);
  });

  it('of no person whom its receiver removed, until it adds the person again; no answer tells who exists', async () => {
    const { domain, client, key, told, program, streamId, userId } = await newGround();
    const change = (act: string, subject: object) =>
      program.send('POST', `/ssf/subjects/${act}`, { stream_id: streamId, subject });
    const named = [
      { format: 'email', email: `BOB@${domain}` },
      { format: 'iss_sub', iss: app.baseUrl, sub: userId },
      { format: 'email', email: `nobody@${domain}` },
      { format: 'iss_sub', iss: app.baseUrl, sub: 'no-uuid' },
      { format: 'iss_sub', iss: app.baseUrl, sub: program.application.clientId },
    ];
    for (const subject of named) {
      const removed = await change('remove', subject);
      expect([subject, removed.status, removed.text]).toEqual([subject, 204, '']);
    }
    await addressed(client, 'POST', '/logout');
    expect(await told()).toEqual([]);
    for (const subject of named) {
      const added = await change('add', subject);
      expect([subject, added.status, added.text]).toEqual([subject, 200, '']);
    }
    await client.logIn(key, { address: newAddress() });
    await signInTo(app, client, program.application);
    await addressed(client, 'POST', '/logout');
    expect(await told()).toEqual([['session-revoked', 'user']]);
    for (const subject of [
      { format: 'phone_number', phone_number: '+1' },
      { format: 'iss_sub', iss: 'https://other.example', sub: userId },
    ]) {
      expect((await change('remove', subject)).status).toBe(400);
    }
  });

  it('nothing while it is disabled, and keeps nothing', async () => {
    const { client, streamId, program } = await newGround();
    await program.send('POST', '/ssf/verify', { stream_id: streamId });
    expect(await signalsOf(app, streamId)).toHaveLength(1);
    const body = { stream_id: streamId, status: 'disabled', reason: 'Maintenance' };
    const answer = await program.send('POST', '/ssf/status', body);
    expect([answer.status, answer.json]).toEqual([200, body]);
    await addressed(client, 'POST', '/logout');
    expect(await signalsOf(app, streamId)).toEqual([]);
  });
});

describe('the address of a person', () => {
  it('names the person to an application that is set so, as it was at the event', async () => {
    grounds += 1;
    const domain = `signals-${grounds}.example`;
    const admin = await app.enrolled(`ada@${domain}`);
    const program = await newProgram(app, admin.client, { subject_format: 'email' });
    const streamId = await createStream(program);
    const { client } = await app.enrolled(`bob@${domain}`);
    await signInTo(app, client, program.application);
    const id = await idOf(app, `bob@${domain}`);
    await orgApi(admin.client, 'POST', `/members/${id}/remove`);
    const answer = await sendSsf(app, program.token, 'POST', `/ssf/poll/${streamId}`, {
      returnImmediately: true,
    });
    const sets = Object.values((answer.json as { sets: Record<string, string> }).sets);
    const subjects = sets.map(
      (set) =>
        (
          JSON.parse(Buffer.from(set.split('.')[1] ?? '', 'base64url').toString()) as {
            sub_id: object;
          }
        ).sub_id,
    );
    const subject = { format: 'email', email: `bob@${domain}` };
    expect(subjects).toEqual([subject, subject]);
  });
});
