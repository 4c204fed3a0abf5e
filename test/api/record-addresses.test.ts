import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressesOf } from '../../src/domain/directory/record-addresses.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { repeatMigration } from '../support/migration-data.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const work = (value: string) => ({ value, type: 'Work' });
const primary = (value: string) => ({ value, primary: true });
const home = (value: string) => ({ value, type: 'home' });

/** Users as a directory sends them by SCIM: `userName` and `emails`. */
const VECTORS: readonly (readonly [userName: string, emails: unknown])[] = [
  ['a@x.example', undefined],
  ['a', []],
  ['a', [home('b@x.example'), home('c@x.example')]],
  ['A@X.example', [primary('b@x.example'), work('a@x.example')]],
  ['a', [work('b@x.example'), { ...primary('c@x.example'), type: 'work' }]],
  ['a', [work('b@x.example'), primary('c@x.example'), home('d@x.example')]],
  ['a', [work('b@x.example'), work('c@x.example'), primary('not an address')]],
  ['a', [work('b@x.example'), work('B@x.example')]],
  ['a', [home('b@x.example'), work('b@x.example')]],
  // U+212A, the sign of Kelvin, is k in lower case, and no ASCII letter.
  ['a', [primary('b@x.example'), { value: 'c@x.example', type: 'wor\u212a' }]],
  ['a', [{ value: '\u00a0 b@x.example\u3000' }, { value: 7 }, { type: 'work' }, 'c@x.example']],
  ['a', [home(`${'l'.repeat(65)}@x.example`), home(`${'l'.repeat(64)}@x.example`)]],
  ['a', [home('"quoted"@x.example'), home('ü@x.example'), home('b@x_y.example')]],
  ["o'neil.a+b@x.example", [primary('b@-x.example'), work('b@x-.example'), work('b@localhost')]],
];

describe('the addresses of a record', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'addresses.example');
  });
  afterAll(() => app.close());

  it.each(VECTORS)(
    'are the same in the database: userName %j, e-mails %j',
    async (name, emails) => {
      const found = await rows<{ address: string; rank: number }>(
        app.dataSource,
        'SELECT address, rank FROM addresses_of_record($1, $2::jsonb) ORDER BY rank, address',
        [name, JSON.stringify({ emails })],
      );
      const { has } = addressesOf(name, emails);
      expect(found.map(({ address }) => address)).toEqual(has.map(({ address }) => address));
      const single = (ranks: readonly { readonly rank: number }[]) =>
        ranks.map(({ rank }) => (rank > 2 && rank < 1000 ? 'several' : rank));
      expect(single(found)).toEqual(single(has));
    },
  );

  it('are kept by whichever version writes, with those that the record only had', async () => {
    const { json } = await organization.scim('POST', '/Users', {
      userName: 'one@addresses.example',
      emails: [{ value: 'two@addresses.example', type: 'work' }, home('three@addresses.example')],
    });
    await app.dataSource.query(
      `UPDATE users SET user_name = 'four@addresses.example', attributes = '{}' WHERE id = $1`,
      [json.id],
    );
    const kept = await rows(
      app.dataSource,
      'SELECT address, rank FROM record_addresses WHERE user_id = $1 ORDER BY address',
      [json.id],
    );
    expect(kept).toEqual([
      { address: 'four@addresses.example', rank: 0 },
      { address: 'one@addresses.example', rank: null },
      { address: 'two@addresses.example', rank: null },
    ]);
  });

  it('make the upgrade find the twins of earlier records, whose userName another record may have', async () => {
    const { json } = await organization.scim('POST', '/Users', {
      userName: 'record@addresses.example',
      emails: [work('twin@addresses.example')],
    });
    const twin = randomUUID();
    await app.dataSource.query(
      `INSERT INTO users (id, org_id, email) SELECT $1, org_id, 'twin@addresses.example' FROM users WHERE id = $2`,
      [twin, json.id],
    );
    await app.dataSource.query('DELETE FROM record_addresses WHERE user_id = $1', [json.id]);
    for (const name of ['1763790010100-addresses-of-records', '1763790010200-twins']) {
      await repeatMigration(app.dataSource, name);
    }
    const ties = await rows(
      app.dataSource,
      'SELECT record_id, kind FROM record_ties WHERE user_id = $1',
      [twin],
    );
    expect(ties).toEqual([{ record_id: json.id, kind: 'twin' }]);
    const shown = await organization.scim('GET', `/Users/${twin}`);
    expect([shown.status, shown.json.userName]).toEqual([200, 'twin@addresses.example']);
    const filter = encodeURIComponent('userName eq "twin@addresses.example"');
    const listed = await organization.scim('GET', `/Users?filter=${filter}`);
    expect(listed.json.totalResults).toBe(0);
    expect((await organization.scim('DELETE', `/Users/${json.id}`)).status).toBe(204);
    expect((await organization.scim('GET', `/Users/${twin}`)).status).toBe(404);
  });

  it('are locked without a wait for those who issue, or change plain attributes', async () => {
    const email = 'issues@addresses.example';
    const { json } = await organization.scim('POST', '/Users', { userName: email });
    const { client } = await app.enrolled(email);
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM directory_locks FOR UPDATE');
    const waiting = organization.scim('POST', '/Users', { userName: 'waits@addresses.example' });
    await untilWaiting(app.dataSource, 1);
    const issued = await client.post(
      '/v1/credentials/ssh',
      { public_key: newPublicKeyLine() },
      { address: newAddress() },
    );
    const titled = await organization.scim('PATCH', `/Users/${json.id}`, {
      Operations: [{ op: 'replace', path: 'title', value: 'Engineer' }],
    });
    await holder.rollbackTransaction();
    await holder.release();
    expect([issued.status, titled.status, (await waiting).status]).toEqual([200, 200, 201]);
  });
});
