import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey } from '../support/keys.js';
import {
  emails,
  startPeopleService,
  type Ground,
  type PeopleService,
} from '../support/people/ground.js';
import { count, rows } from '../support/rows.js';

let service: PeopleService;
beforeAll(async () => {
  service = await startPeopleService();
});
afterAll(() => service.close());

/**
 * Lets ada sign in, lets the record of a second account take her over, and lets her own record come
 * second. Then an admin parts ada from the second account. Returns her new id, and her own record.
 */
async function partedWithOwnRecord(g: Ground) {
  const ada = await g.member('ada');
  const second = await g.post({ userName: 'adm-ada', emails: emails(ada.email) });
  const own = await g.post({ userName: ada.email });
  const person = (await g.act(second, 'part')).json.id as string;
  return { ada, own, person };
}

describe('a record that has the id of a member as its userName', () => {
  it('does not stand in the way when the member without an address is parted', async () => {
    const g = await service.found('open');
    const { own, person } = await partedWithOwnRecord(g);
    await g.act(own, 'give-address');
    const record = await g.post({ userName: person });
    expect((await g.act(person, 'part')).json).toMatchObject({ parted_from: [own], email: null });
    expect((await g.show(record)).userName).toBe(person);
    await g.remove(person);
  });

  it('does not stand in the way when the member loses the address, tied or not', async () => {
    const g = await service.found('open');
    const { ada, own, person } = await partedWithOwnRecord(g);
    await g.put(own, { userName: g.at('other'), emails: emails(ada.email) });
    await rows(g.app.dataSource, 'UPDATE users SET user_name = NULL WHERE id = $1', [person]);
    const record = await g.post({ userName: person });
    expect((await g.act(own, 'give-address')).json.taken_from).toBe(person);
    expect((await g.show(record)).userName).toBe(person);
    expect((await g.show(own)).userName).toBe(g.at('other'));
  });
});

describe('the audit log', () => {
  it('names each identity that an admin unbound by giving the address to a record', async () => {
    const g = await service.found('open');
    const { own, person } = await partedWithOwnRecord(g);
    await g.act(own, 'give-address');
    const unbound = await rows(
      g.app.dataSource,
      `SELECT class, actor_id, details ->> 'access_ended' AS ended, details ? 'issuer' AS has_issuer
       FROM audit_events WHERE type = 'identity_unbound' AND subject_id = $1`,
      [person],
    );
    expect(unbound).toEqual([
      { class: 'auth', actor_id: g.admin.userId, ended: 'true', has_issuer: true },
    ]);
  });

  it('says that a record lost its address to a new record with this userName', async () => {
    const g = await service.found('open');
    const second = await g.post({ userName: 'adm-ada', emails: emails(g.at('ada')) });
    await g.post({ userName: g.at('ada') });
    const events = await g.events('scim_operation', second);
    expect(events.at(-1)?.details).toMatchObject({
      operation: 'update',
      resource_id: second,
      email: null,
      previous_email: g.at('ada'),
    });
  });
});

it('a parted person keeps the unread notices, which the record does not show', async () => {
  const g = await service.found('open');
  const bob = await g.member('bob');
  if (!bob.browser) throw new Error('bob has no session');
  expect((await addKey(g.app, bob.browser, g.app.newKey(), 'Spare')).status).toBe(200);
  const record = await g.post({ userName: g.at('robert'), emails: emails(bob.email) });
  const noticesOf = (id: string) =>
    count(g.app.dataSource, 'account_notices WHERE user_id = $1', [id]);
  expect(await noticesOf(record)).toBe(1);
  const person = (await g.act(record, 'part')).json.id as string;
  expect([await noticesOf(record), await noticesOf(person)]).toEqual([0, 1]);
});
