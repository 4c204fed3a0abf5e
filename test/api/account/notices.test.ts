import { hash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { VERSION } from '#platform/text/service-version.js';
import { operatorAccess } from '../../../src/domain/admin/operator-access/compose-access.js';
import { CleanUp } from '../../../src/domain/admin/clean-up/clean-up.service.js';
import { furtherAdmin, madeApiToken } from '../../support/api-tokens.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { cliToken } from '../../support/cli-token.js';
import { addKey } from '../../support/keys.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { enrollWith, passFor, signedIn } from '../../support/passes.js';
import { count, rows } from '../../support/rows.js';

const ADA = 'ada@notices.example';
const BEA = 'bea@notices.example';

/** The response headers that only the `svc` command gets. */
const HEADERS = ['svc-notice', 'svc-version'];

let app: TestApp;
/**
 * Ada and bea are the admins of an organization. Cleo is a member of it, and eve is in another one.
 */
let ada: EnrolledUser;
let bea: Client;
let cleo: EnrolledUser;
let eve: EnrolledUser;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled(ADA);
  ({ client: bea } = await furtherAdmin(app, ada.client, BEA));
  cleo = await app.enrolled('cleo@notices.example');
  eve = await app.enrolled('eve@elsewhere.example');
});
afterAll(() => app.close());
beforeEach(() => rows(app.dataSource, 'DELETE FROM account_notices'));

/** Enrolls a second key named Spare for a user. */
const addKeyOf = ({ client }: EnrolledUser) => addKey(app, client, app.newKey(), 'Spare');

/** Returns the notices on a page. Each is its text up to the comma before the time. */
async function shown(client: Client, path = '/account'): Promise<string[]> {
  const { text } = await client.get(path);
  return [...text.matchAll(/data-notice="[^"]+">(.*?), <time/g)].map(([, words = '']) =>
    words.replaceAll(/<\/?bdi>/g, ''),
  );
}
const shownIds = async (client: Client) =>
  /name="shown" value="([^"]+)"/.exec((await client.get('/account')).text)?.[1] ?? '';
const dismiss = (
  client: Client,
  fields: Readonly<Record<string, string>>,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  client.send('POST', '/account/notices/dismiss', {
    address: newAddress(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  });

describe('a person hears', () => {
  it('of a key that was added, on the launcher and on the account, and no other person does', async () => {
    await addKeyOf(cleo);
    for (const path of ['/', '/account']) {
      expect(await shown(cleo.client, path)).toEqual([
        expect.stringMatching(/^The security key “.+” was added to your account$/),
      ]);
    }
    for (const other of [ada.client, bea, eve.client]) expect(await shown(other)).toEqual([]);
  });

  it('of an admin who was made, with all admins: the person, and the one who acted', async () => {
    const id = await idOf(app, 'cleo@notices.example');
    expect((await orgApi(ada.client, 'POST', `/members/${id}/promote`)).status).toBe(200);
    expect(await shown(cleo.client)).toEqual([`${ADA} made you an admin`]);
    expect(await shown(ada.client)).toEqual(['You made cleo@notices.example an admin']);
    expect(await shown(bea)).toEqual([`${ADA} made cleo@notices.example an admin`]);
    expect(await shown(eve.client)).toEqual([]);
    expect((await orgApi(ada.client, 'POST', `/members/${id}/demote`)).status).toBe(200);
  });

  it('of an API token and of an event receiver, if the person is an admin', async () => {
    await madeApiToken(bea);
    const body = { name: 'Wiretap', kind: 'otlp', url: 'http://127.0.0.1:9/' };
    expect((await orgApi(bea, 'POST', '/event-receivers', body)).status).toBe(201);
    expect(await shown(ada.client)).toEqual([
      `${BEA} made the event receiver “Wiretap”, which gets the audit log`,
      `${BEA} made the API token “SIEM”`,
    ]);
    expect(await shown(bea)).toHaveLength(2);
    expect(await shown(cleo.client)).toEqual([]);
  });

  it('of each change of a receiver that moves events or secrets, and of a SCIM token', async () => {
    const body = { name: 'Wiretap', kind: 'webhook', url: 'http://127.0.0.1:9/' };
    const { id } = (await orgApi(bea, 'POST', '/event-receivers', body)).json;
    const path = `/event-receivers/${id}`;
    await rows(app.dataSource, 'DELETE FROM account_notices');
    await orgApi(bea, 'PATCH', path, { name: 'Renamed' });
    expect(await shown(ada.client)).toEqual([]);
    for (const change of [
      { url: 'http://127.0.0.1:9/moved' },
      { types: ['notices'] },
      { header_name: 'X-Token', header_value: 'x' },
      { status: 'paused' },
    ]) {
      expect((await orgApi(bea, 'PATCH', path, change)).status).toBe(200);
    }
    await orgApi(bea, 'POST', `${path}/rotate-secret`, {});
    await orgApi(bea, 'DELETE', path);
    await orgApi(bea, 'POST', '/scim-tokens', { description: 'Okta' });
    await orgApi(bea, 'PATCH', '', { membership: 'open' });
    expect(await shown(ada.client)).toEqual([
      `${BEA} made the SCIM token “Okta”`,
      `${BEA} removed the event receiver “Renamed”`,
      `${BEA} replaced the secret of the event receiver “Renamed”`,
      ...Array<string>(4).fill(`${BEA} changed the event receiver “Renamed”`),
    ]);
  });

  it('of a pass that was given, after the next enrollment', async () => {
    await app.enrolled('dora@notices.example');
    const pass = await passFor(ada.client, await idOf(app, 'dora@notices.example'));
    const dora = await signedIn(app, 'dora@notices.example');
    const enrolled = await enrollWith(app, dora, app.newKey(), pass);
    expect(enrolled.status, enrolled.text).toBe(200);
    expect(await shown(dora)).toEqual([
      `${ADA} ended your keys, and gave you a pass to enroll another one`,
    ]);
  });

  it('nothing of becoming the first admin of an organization', async () => {
    const { client } = await app.enrolled('first@founders.example');
    expect(await shown(client)).toEqual([]);
  });

  it('of an admin whom the operator of the service made', async () => {
    const userId = await idOf(app, 'cleo@notices.example');
    const operator = {
      name: 'olga',
      uid: 0,
      loginUid: undefined,
      claimedUser: undefined,
      host: 'h',
    };
    const access = operatorAccess(app.dataSource);
    await access.perform({ kind: 'make-admin', userId, operator });
    expect(await shown(cleo.client)).toEqual(['The operator of the service made you an admin']);
    expect(await shown(bea)).toEqual([
      'The operator of the service made cleo@notices.example an admin',
    ]);
  });
});

describe('a notice', () => {
  it('stays until its person has read it, and a later one stays', async () => {
    await madeApiToken(ada.client);
    const read = await shownIds(ada.client);
    await madeApiToken(ada.client);
    const answer = await dismiss(ada.client, { shown: read, back: '/account' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/account']);
    expect(await shown(ada.client)).toHaveLength(1);
    expect(await shown(bea)).toHaveLength(2);
    const page = { shown: await shownIds(ada.client), back: '/' };
    const all = await Promise.all(Array.from({ length: 20 }, () => dismiss(ada.client, page)));
    expect(all.map(({ status }) => status)).toEqual(Array(20).fill(303));
    expect(await shown(ada.client)).toEqual([]);
  });

  it('that the page did not show stays, also an older one', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO account_notices (user_id, id, audit_id, type, name)
       SELECT u.id, gen_random_uuid(), gen_random_uuid(), 'api_token_created', 'SIEM'
       FROM users u, generate_series(1, 25) WHERE u.email = $1`,
      [ADA],
    );
    const page = { shown: await shownIds(ada.client), back: '/' };
    expect(page.shown.split(',')).toHaveLength(20);
    expect((await dismiss(ada.client, page)).status).toBe(303);
    expect(await shown(ada.client)).toHaveLength(5);
  });

  it('is removed by its person alone, from a page of the service', async () => {
    await madeApiToken(ada.client);
    const page = { shown: await shownIds(ada.client), back: '/' };
    expect((await dismiss(app.client(), page)).status).not.toBe(303);
    const forged = await dismiss(ada.client, page, { origin: 'https://evil.example' });
    expect([forged.status]).toEqual([403]);
    await addKeyOf(cleo);
    await dismiss(cleo.client, page); // the ids on a page of ada
    expect(await shown(cleo.client)).toHaveLength(1);
    const away = await dismiss(ada.client, { ...page, back: 'https://evil.example/' });
    expect(away.status).toBe(400);
    expect(await shown(ada.client)).toHaveLength(1);
  });

  it('is a header of each answer to the command line, beside the version, and of no other answer', async () => {
    await addKeyOf(cleo);
    const [{ id } = { id: '' }] = await rows<{ id: string }>(
      app.dataSource,
      'SELECT id FROM account_notices',
    );
    const { token, dpop } = await cliToken(app, cleo.key);
    const ath = hash('sha256', token, 'base64url');
    const heard = async () => {
      const proof = await dpop.proof('GET', `${app.baseUrl}/v1/sessions`, { ath });
      const headers = { authorization: `DPoP ${token}`, dpop: proof };
      const answer = await app.client().get('/v1/sessions', { headers });
      return [answer.status, ...HEADERS.map((name) => answer.headers.get(name))];
    };
    expect(await heard()).toEqual([200, `type=key_registered, id="${id}"`, VERSION]);
    const { headers } = await cleo.client.get('/v1/sessions');
    expect(HEADERS.map((name) => headers.get(name))).toEqual([null, null]);
    await rows(app.dataSource, 'DELETE FROM account_notices');
    expect(await heard()).toEqual([200, null, VERSION]);
  });

  it('that its person does not read is deleted after 90 days, and with its account', async () => {
    await addKeyOf(cleo);
    await addKeyOf(cleo);
    await rows(
      app.dataSource,
      `UPDATE account_notices SET created_at = now() - interval '91 days'
       WHERE id = (SELECT min(id::text)::uuid FROM account_notices)`,
    );
    await rows(
      app.dataSource,
      `INSERT INTO account_notices (user_id, id, audit_id, type)
       VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'admin_promote')`,
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    expect(await count(app.dataSource, 'account_notices')).toBe(1);
  });
});
