import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everyRevocation } from '../../../src/domain/admin/revocation-kinds/every-revocation.js';
import { operatorAccess } from '../../../src/domain/admin/operator-access/compose-access.js';
import { asProgram, furtherAdmin } from '../../support/api-tokens.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import {
  madeReceiver,
  receiverApi,
  startEventServer,
  untilCreation,
  wakeReceivers,
  webhookIds,
  writeEvents,
  type CreatedReceiver,
  type EventServer,
} from '../../support/event-receivers.js';
import { organizationOf } from '../../support/feed-reader.js';
import { orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

const ADA = 'ada@formers.example';
const SOON = { timeout: 90_000, interval: 20 };
const PATCH = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] };
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';

let app: TestApp;
let ada: Client;
let orgId: string;
let scimToken: string;
const servers: EventServer[] = [];
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled(ADA));
  orgId = await organizationOf(app.dataSource, ADA);
  scimToken = (await orgApi(ada, 'POST', '/scim-tokens', { description: 'Okta' })).json.token;
  await orgApi(ada, 'PATCH', '', { membership: 'open' });
});
afterAll(async () => {
  await app.close();
  await Promise.all(servers.map((server) => server.close()));
});

const scim = (method: string, path: string, body?: unknown) =>
  asProgram(app, scimToken, method, `/scim/v2${path}`, { body });
const stateOf = async ({ id }: CreatedReceiver) =>
  (
    await rows<{ status: string; lease: number; place: string; address_by: string }>(
      app.dataSource,
      'SELECT status, lease, event_id AS place, address_by FROM event_receivers WHERE id = $1',
      [id],
    )
  )[0];

/**
 * Creates a second admin with an event receiver, whose server has got the event of its creation.
 */
async function ground(name: string) {
  const email = `${name.toLowerCase().replaceAll(' ', '-')}@formers.example`;
  if (name.includes('SCIM')) {
    const user = { userName: email, schemas: [USER] };
    expect((await scim('POST', '/Users', user)).status).toBe(201);
  }
  const maker = await furtherAdmin(app, ada, email);
  const server = await startEventServer();
  servers.push(server);
  const receiver = await madeReceiver(maker.client, server.uri, { name: `of ${name}` });
  await untilCreation(server);
  return { maker, server, receiver };
}

describe('a receiver of an admin who loses access', () => {
  const operator = { name: 'olga', uid: 0, loginUid: undefined, claimedUser: undefined, host: 'h' };
  const off = { ...PATCH, Operations: [{ op: 'replace', path: 'active', value: false }] };

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['removed by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/remove`)],
    ['deactivated by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/deactivate`)],
    ['demoted by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/demote`)],
    ['revoked by an admin', (id) => orgApi(ada, 'POST', `/members/${id}/revoke-credentials`)],
    ['removed by SCIM', (id) => scim('DELETE', `/Users/${id}`)],
    ['deactivated by SCIM', (id) => scim('PATCH', `/Users/${id}`, off)],
    [
      'revoked by the operator',
      (userId) =>
        operatorAccess(app.dataSource).perform({ kind: 'revoke-everything', userId, operator }),
    ],
  ])('is paused at once, and another admin resumes it at its place: %s', async (how, act) => {
    const { maker, server, receiver } = await ground(how);
    const member = (await orgApi(ada, 'GET', `/members/${maker.id}`)).json;
    expect(member.ending.remove).toMatchObject({ event_receivers: 1 });
    expect((await ada.get(`/admin/members/${maker.id}`)).text).toContain(`<bdi>of ${how}</bdi>`);
    const answered = Promise.withResolvers<number>();
    server.answer = () => answered.promise;
    const [underWay = ''] = await writeEvents(app, orgId, 1);
    await expect.poll(() => webhookIds(server), SOON).toContain(underWay);
    const before = await stateOf(receiver);
    await act(maker.id);
    answered.resolve(200);
    const after = await stateOf(receiver);
    expect(after).toMatchObject({ status: 'paused', place: before?.place });
    expect(after?.lease).toBeGreaterThan(before?.lease ?? 0);
    const seen = server.received.length;
    const ids = await writeEvents(app, orgId, 2);
    const alert = app.log.find(
      (line) => line.includes('Event receivers are paused') && line.includes(receiver.id),
    );
    expect(alert).toContain(`of ${how}`);
    const [event] = await rows<{ details: object }>(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'event_receiver_updated' AND details ->> 'receiver_id' = $1`,
      [receiver.id],
    );
    expect(event?.details).toMatchObject({ name: `of ${how}`, status: 'paused' });
    expect(server.received).toHaveLength(seen);

    server.answer = () => 200;
    const resumed = await receiverApi(ada, 'PATCH', receiver, '', { status: 'enabled' });
    expect(resumed.json).toMatchObject({ status: 'enabled', maker_is_admin: true });
    await rows(app.dataSource, "UPDATE event_receivers SET leased_until = '-infinity'");
    wakeReceivers(app);
    const rest = () => webhookIds(server).slice(seen);
    await expect.poll(rest, SOON).toEqual(expect.arrayContaining([underWay, ...ids]));
    await receiverApi(ada, 'DELETE', receiver);
  });

  it('stays, once another admin has given the address or resumed it', async () => {
    const { maker, server, receiver } = await ground('handed over');
    const url = `${server.uri}?of=ada`;
    expect((await receiverApi(ada, 'PATCH', receiver, '', { url })).status).toBe(200);
    await orgApi(ada, 'POST', `/members/${maker.id}/remove`);
    expect((await stateOf(receiver))?.status).toBe('enabled');
    await receiverApi(ada, 'DELETE', receiver);
  });

  it.each([
    ['tells', 'UPDATE users SET active = false WHERE id = $1'],
    ['is gone', 'DELETE FROM users WHERE id = $1'],
  ])('gets nothing even if only the row of the user %s', async (how, change) => {
    const { maker, server } = await ground(`whose row ${how}`);
    await rows(app.dataSource, change, [maker.id]);
    const seen = server.received.length;
    const other = await startEventServer();
    servers.push(other);
    const own = await madeReceiver(ada, other.uri);
    const [id = ''] = await writeEvents(app, orgId, 1);
    await expect.poll(() => webhookIds(other), SOON).toContain(id);
    expect(server.received).toHaveLength(seen);
    await receiverApi(ada, 'DELETE', own);
  });
});

describe('every receiver', () => {
  it('is paused if the database may have lost the removal of an admin', async () => {
    const { receiver } = await ground('of a restore');
    const cause = { reason: 'records_lost', revokedBy: 'operator' };
    const ended = await everyRevocation().endOnRecord(
      (work) => app.dataSource.transaction(work),
      cause,
    );
    expect(ended['event_receivers']).toBeGreaterThan(0);
    expect((await stateOf(receiver))?.status).toBe('paused');
  });
});
