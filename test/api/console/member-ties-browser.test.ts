import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { consoleSetUp, KeyboardWalk, type ConsoleAdmin } from '../../support/console.js';
import { newAddress, type Answer } from '../../support/client.js';
import '../../support/full-scale-only.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { checkPage } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';
import { touchedAgo } from '../../support/keys.js';

requires('chromium').describe('the accounts of one person in the console', () => {
  const world = consoleSetUp('member-ties');
  let ada: ConsoleAdmin;
  let page: Page;
  let scim: (method: string, path: string, body?: unknown) => Promise<Answer>;
  beforeEach(async () => {
    ada = await world.newAdmin();
    ({ page } = ada.profile);
    const made = await orgApi(ada.client, 'POST', '/scim-tokens', { description: 'a directory' });
    await orgApi(ada.client, 'PATCH', '', { membership: 'open' });
    scim = (method, path, body) =>
      world.app.client().send(method, `/scim/v2${path}`, {
        address: newAddress(),
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${made.json.token as string}`, origin: '' },
      });
  });

  const at = (local: string) => `${local}@${ada.domain}`;
  const work = (value: string) => [{ value, type: 'work', primary: true }];
  /** Creates a member who signed in and has a key and an SSH certificate. */
  async function member(local: string) {
    const user = await world.app.enrolled(at(local));
    const body = { public_key: newPublicKeyLine() };
    await user.client.post('/v1/credentials/ssh', body, { address: newAddress() });
    return { ...user, email: at(local), id: await idOf(world.app, at(local)) };
  }
  async function record(body: object): Promise<string> {
    const answer = await scim('POST', '/Users', body);
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
    return answer.json.id as string;
  }
  /** Creates a record of SCIM and a member who is its twin. */
  async function withTwin() {
    const twin = await member('twin');
    const id = await record({ userName: at('robert') });
    await scim('PUT', `/Users/${id}`, { userName: at('robert'), emails: work(twin.email) });
    return { id, twin };
  }
  /**
   * Creates two records of SCIM with one address. The user of the first signs in; the second is
   * linked, because its `userName` is that address.
   */
  async function withLink() {
    const second = await record({ userName: 'adm-bob', emails: work(at('bob')) });
    const bob = await member('bob');
    expect(bob.id).toBe(second);
    return { bob, own: await record({ userName: at('bob'), emails: work(at('bob')) }) };
  }
  const notice = (text: string | RegExp) =>
    page.locator('[data-page-notice]').filter({ hasText: text });
  const act = (name: string) => page.locator(`[data-act="${name}"]`);
  const rowsShown = () => page.locator('tbody tr th a').allTextContents();

  it('the list, its filters and the pages of tied members pass every check of a page', async () => {
    const { id } = await withTwin();
    const { own } = await withLink();
    await checkPage(ada.profile, '/admin/members?tie=no_address', async (open) => {
      await open.locator('[data-act="readmit"] summary').click();
    });
    for (const each of [id, own]) {
      await checkPage(ada.profile, `/admin/members/${each}`, async (open) => {
        for (const summary of await open.locator('#ties ~ .acts summary').all()) {
          await summary.click();
        }
      });
    }
    expect(ada.profile.pageErrors).toEqual([]);
  });

  it('the list names twins, linked and taken-over members and addresses that sign in no one, and filters by each', async () => {
    const { twin } = await withTwin();
    await withLink();
    await member('carol');
    await record({ userName: at('carol') });
    for (const userName of ['x', 'y']) {
      await record({ userName, emails: work(at('shared')) });
    }
    const found = async (tie: string) => {
      await page.goto(`/admin/members?tie=${tie}`);
      return (await rowsShown()).length;
    };
    expect(await found('twin')).toBe(2);
    expect(await page.locator('tr', { hasText: twin.email }).textContent()).toContain('Twin');
    expect(await found('linked')).toBe(2);
    expect(await found('taken_over')).toBe(1);
    expect(await page.locator('tr', { hasText: at('carol') }).textContent()).toContain(
      'Taken over',
    );
    // These records have no address: the linked one, the one of the twin, and the two with the
    // shared mailbox.
    expect(await found('no_address')).toBeGreaterThanOrEqual(3);
    const states = await page.locator('td[data-label="State"]').allTextContents();
    expect(states.filter((state) => state.includes('Shared address'))).toHaveLength(2);
    expect(states.filter((state) => state.includes('Address withheld'))).toHaveLength(1);
    const json = (await orgApi(ada.client, 'GET', '/members?tie=linked')).json;
    expect(json.members).toHaveLength(2);
  });

  it('job: part a twin, by the keyboard alone at 390 pixels: nothing ends, and the end of the record spares the person', async () => {
    const { id, twin } = await withTwin();
    const walk = await KeyboardWalk.begin(page, `/admin/members/${twin.id}`);
    expect(await page.locator('[data-related="twin_of"] a').getAttribute('href')).toBe(
      `/admin/members/${id}`,
    );
    await walk.press('[data-act="part"] summary');
    await walk.press('[data-act="part"] button');
    await notice('The two people are parted. Nothing had to end.').waitFor();
    walk.print('part a twin');
    expect(await page.locator('[data-related]').count()).toBe(0);
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
    expect((await twin.client.get('/v1/keys')).status).toBe(200);
    expect(ada.profile.pageErrors).toEqual([]);
  });

  it('parts a member who was taken over: says what ends before and after, and opens the new account', async () => {
    const bob = await member('bob');
    const id = await record({ userName: at('robert'), emails: work(bob.email) });
    expect(id).toBe(bob.id);
    await page.goto(`/admin/members/${id}`);
    await act('part').locator('summary').click();
    expect(await act('part').locator('[data-ends]').textContent()).toBe(
      '1 session and 1 SSH certificate',
    );
    await act('part').locator('button').click();
    await notice('The two people are parted. Ended: 1 session, 1 SSH certificate.').waitFor();
    expect(new URL(page.url()).pathname).not.toBe(`/admin/members/${id}`);
    expect(await page.locator('tr[data-key]').count()).toBe(1);
    expect((await bob.client.get('/v1/keys')).status).toBe(401);
  });

  it('gives a linked record its address with a touch: says what ends of the account that had it', async () => {
    const { bob, own } = await withLink();
    await page.goto(`/admin/members/${own}`);
    expect(await page.locator('[data-tie="withheld"]').textContent()).toContain(at('bob'));
    await touchedAgo(world.app, ada.email, 360);
    await act('give-address').locator('summary').click();
    expect(await act('give-address').locator('[data-ends]').textContent()).toBe(
      '1 session and 1 SSH certificate',
    );
    await act('give-address').locator('button').click();
    await notice('The member has the address. Ended: 1 session, 1 SSH certificate.').waitFor();
    expect((await bob.client.get('/v1/keys')).status).toBe(401);
    const [row] = await rows(world.app.dataSource, 'SELECT email FROM users WHERE id = $1', [own]);
    expect(row).toEqual({ email: at('bob') });
  });

  it('previews count what ends of the twins of a record, and the act ends it', async () => {
    const { id, twin } = await withTwin();
    await page.goto(`/admin/members/${id}`);
    await act('deactivate').locator('summary').click();
    expect(await act('deactivate').locator('[data-ends]').textContent()).toBe(
      '1 session and 1 SSH certificate',
    );
    await act('deactivate').locator('button').click();
    await notice('The member is deactivated. Ended: 1 session, 1 SSH certificate.').waitFor();
    expect((await twin.client.get('/v1/keys')).status).toBe(401);
  });

  it('lets a removed person in again with a touch, from the list of members', async () => {
    const bob = await member('bob');
    await page.goto(`/admin/members/${bob.id}`);
    await act('remove').locator('summary').click();
    await act('remove').locator('button').click();
    await notice('The member is removed.').waitFor();
    expect((await world.app.client().signIn(bob.email)).status).toBe(403);
    await touchedAgo(world.app, ada.email, 360);
    await act('readmit').locator('summary').click();
    await page.getByLabel('E-mail address').fill(bob.email);
    await act('readmit').locator('button').click();
    await notice('The address may sign in again.').waitFor();
    const back = world.app.client();
    expect((await back.signIn(bob.email)).status).toBe(200);
    expect((await back.enroll(world.app.newKey())).status).toBe(200);
    await act('readmit').locator('summary').click();
    await page.getByLabel('E-mail address').fill(at('never-removed'));
    await act('readmit').locator('button').click();
    await page.getByRole('status').filter({ hasText: 'has not barred' }).waitFor();
    expect(await count(world.app.dataSource, `audit_events WHERE type = 'member_readmitted'`)).toBe(
      1,
    );
  });
});
