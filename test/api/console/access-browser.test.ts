import { expect, it } from 'vitest';
import { accessApi } from '../../support/access-api.js';
import { makeGroupRow } from '../../support/access-rows.js';
import { consoleSetUp, HOSTILE, KeyboardWalk, openAs } from '../../support/console.js';
import { addMember, idOf } from '../../support/org-api.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

requires('chromium').describe('the pages of targets in Chromium', () => {
  const pages = consoleSetUp('targets');

  const orgOf = async (email: string): Promise<string> => {
    const [row] = await rows<{ org_id: string }>(
      pages.app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [email],
    );
    if (!row) throw new Error(`${email} has no organization`);
    return row.org_id;
  };

  it('make a group of hosts and assign a group of SCIM by keyboard alone, with a forecast', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const orgId = await orgOf(email);
    await addMember(pages.app, email, `grace@${domain}`);
    const grace = await idOf(pages.app, `grace@${domain}`);
    await makeGroupRow(pages.app.dataSource, orgId, 'Operators', [grace]);

    const walk = await KeyboardWalk.begin(page, '/admin/access');
    await walk.fill('#group-name', 'prod');
    await walk.fill('#group-hosts', '*.prod.example.com');
    await walk.fill('#group-logins', 'deploy');
    await walk.press('form[data-send="POST /api/v1/org/access/host_group"] button');
    await page.waitForURL('**/admin/access/host_group/*');
    expect(await page.locator('[data-rule]').textContent()).toBe('Everyone');
    const line = `--organization ${orgId} --group prod --login deploy`;
    expect(await page.locator('code.secret').textContent()).toContain(line);

    await page.locator('input[name=access][value=assigned]').check();
    await walk.fill('#add-groups', 'Operators');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/change?*');
    expect(await page.locator('[data-wanted]').textContent()).toContain('Assigned: 1 group');
    expect(await page.locator('section:has(#loses)').textContent()).toContain(email);
    await walk.press('form[data-send^="PUT"] button');
    await page.getByText('The rule is changed.').waitFor();
    walk.print('make a group of hosts and assign a group');
    expect(await page.locator('[data-rule]').textContent()).toBe('Assigned: 1 group');
    const { targets } = (await accessApi(client, 'GET', '?kind=host_group')).json;
    expect(targets).toMatchObject([{ name: 'prod', access: 'assigned' }]);

    await page.goto(`${new URL(page.url()).pathname}?user=${grace}`);
    expect(await page.locator('[data-why]').textContent()).toContain('Admitted.');
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('refuse to change a rule that another admin has changed meanwhile', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page } = profile;
    const made = await accessApi(client, 'POST', '/host_group', {
      name: 'db',
      hosts: ['db*'],
      logins: ['root'],
    });
    const path = `/host_group/${made.json.id}`;
    await page.goto(`/admin/access${path}/change?access=assigned`);
    const changed = await accessApi(client, 'PATCH', path, { logins: ['admin'] }, '"1"');
    expect(changed.status).toBe(200);
    await page.getByRole('button', { name: 'Change the rule' }).click();
    await page.getByText('This was changed since you opened it.').waitFor();
    await profile.leave();
  });

  it('delete a role by keyboard alone', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const walk = await KeyboardWalk.begin(page, '/admin/access');
    await walk.fill('#role-name', 'deploy');
    await walk.fill('#role-arn', 'arn:aws:iam::123456789012:role/Deploy');
    await walk.press('form[data-send="POST /api/v1/org/access/aws_role"] button');
    await page.waitForURL('**/admin/access/aws_role/*');
    expect(await page.locator('#trust + p + pre').textContent()).toContain('RoleAuthorizedByIdp');
    await walk.press('a[href$="/delete"]');
    await page.waitForURL('**/delete');
    await walk.press('form[data-send^="DELETE"] button');
    await page.getByText('It is deleted.').waitFor();
    expect((await accessApi(client, 'GET', '?kind=aws_role')).json.targets).toEqual([]);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('is accessible and small on every screen, also with a hostile name', async () => {
    const admin = await pages.newAdmin();
    const orgId = await orgOf(admin.email);
    await makeGroupRow(pages.app.dataSource, orgId, HOSTILE.slice(0, 250));
    const made = await accessApi(admin.client, 'POST', '/host_group', {
      name: 'prod',
      hosts: [`${'w'.repeat(60)}.example.com`],
      logins: ['deploy'],
    });
    await admin.profile.leave();
    const target = `/admin/access/host_group/${made.json.id}`;
    const proposal = `access=assigned&add_people=${encodeURIComponent(HOSTILE.slice(0, 200))}`;
    for (const path of [
      '/admin/access',
      target,
      `${target}/change?${proposal}`,
      `${target}/delete`,
    ]) {
      const profile = await openAs(pages.browser, pages.app, admin);
      await checkPage(profile, path);
      await profile.page.setViewportSize({ width: 320, height: 640 });
      expect(await overflowing(profile.page)).toEqual([]);
      expect(await profile.page.locator('main img').count()).toBe(0);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    }
  });

  it('answers 404 for a kind or a target that the organization does not have', async () => {
    const { client } = await pages.newAdmin();
    const foreign = await pages.newAdmin();
    const made = await accessApi(foreign.client, 'POST', '/host_group', {
      name: 'prod',
      hosts: ['*.example.com'],
      logins: ['deploy'],
    });
    for (const path of ['nothing/1', `host_group/${made.json.id}`, 'host_group/1', 'aws_role/x']) {
      for (const page of ['', '/change?access=everyone', '/delete']) {
        expect((await client.get(`/admin/access/${path}${page}`)).status).toBe(404);
      }
    }
  });
});
