import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { accessApi, addHostGroup, addRole, putRule } from '../../support/access-api.js';
import { addApplication } from '../../support/applications.js';
import {
  consoleSetUp,
  HOSTILE,
  KeyboardWalk,
  openAs,
  openWithoutScripts,
} from '../../support/console.js';
import '../../support/full-scale-only.js';
import { touchedAgo } from '../../support/keys.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

const ROLE_ARN = 'arn:aws:iam::123456789012:role/Deploy';

requires('chromium').describe('the pages of who may reach what in Chromium', () => {
  const pages = consoleSetUp('access');

  /**
   * Inserts a SCIM group with members into the organization of the admin with an e-mail address.
   * @returns its id
   */
  async function groupOf(admin: string, name: string, members: readonly string[]): Promise<string> {
    const { dataSource } = pages.app;
    const id = randomUUID();
    await rows(
      dataSource,
      `INSERT INTO groups (id, org_id, display_name) SELECT $1, org_id, $2 FROM users WHERE email = $3`,
      [id, name, admin],
    );
    await rows(
      dataSource,
      'INSERT INTO group_members (group_id, user_id) SELECT $1, unnest($2::uuid[])',
      [id, members],
    );
    return id;
  }

  it('makes a group of hosts, assigns a group, sees the preview and confirms by keyboard at 390 px', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const grace = await addMember(pages.app, email, `grace@${domain}`);
    await addMember(pages.app, email, `bob@${domain}`);
    const ops = await groupOf(email, 'Ops', [grace]);

    const walk = await KeyboardWalk.begin(page, '/admin/access');
    await walk.fill('#group-name', 'prod');
    await walk.fill('#group-hosts', '*.prod.example.com');
    await walk.fill('#group-logins', 'deploy');
    await walk.press('form[data-send="POST /api/v1/org/access/host_group"] button');
    await page.waitForURL('**/admin/access/host_group/*');
    const path = new URL(page.url()).pathname;
    expect(await page.locator('[data-rule]').textContent()).toBe('Everyone');
    expect(await page.getByText('install-host.sh').textContent()).toMatch(
      /\/install-host\.sh \| sudo sh -s -- --organization [0-9a-f-]{36} --group prod --login deploy$/,
    );

    await walk.press('[name=access][value=everyone]', 'ArrowDown');
    expect(await page.getByLabel('Only assigned people and groups').isChecked()).toBe(true);
    await walk.fill('#add-group', 'ops');
    await walk.fill('#minutes', '15');
    await walk.press('section[aria-labelledby=change] button');
    await page.waitForURL(`**${path}/change?**`);
    expect(await page.locator('[data-wanted]').textContent()).toBe(
      'Assigned: 1 group. Needs a touch of your security key in the last 15 minutes.',
    );
    const loses = page.locator('section[aria-labelledby=loses]');
    expect(await loses.locator('[data-count]').textContent()).toBe('2 people');
    expect(await loses.locator('li').allTextContents()).toEqual(
      expect.arrayContaining([email, `bob@${domain}`]),
    );
    expect(await loses.locator('[data-not-recalled]').textContent()).toContain('stays open');

    await walk.press('form[data-send^="PUT"] button');
    await page.getByText('The rule is changed.').waitFor();
    walk.print('make a group of hosts, and assign a group');
    expect(await page.locator('[data-rule]').textContent()).toBe('Assigned: 1 group');
    const rule = await accessApi(client, 'GET', path.slice('/admin/access'.length));
    expect(rule.json).toMatchObject({
      access: 'assigned',
      conditions: { touch_within_seconds: 900 },
      assignments: [{ group: ops }],
    });
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('removes an assignment, names people by address, and refuses what it does not know', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const grace = await addMember(pages.app, email, `grace@${domain}`);
    const bob = await addMember(pages.app, email, `bob@${domain}`);
    const target = await addRole(client, ROLE_ARN);
    await putRule(client, target, { assignments: [{ user: grace }] });
    const stranger = await pages.newAdmin();

    await page.goto(`/admin/access${target}`);
    await page.getByRole('checkbox', { name: `grace@${domain}` }).check();
    await page.getByLabel('Add people by address').fill(`Bob@${domain}\n${stranger.email}`);
    await page.getByRole('button', { name: 'See who gains' }).click();
    await page.waitForURL('**/change?**');
    expect(await page.locator('[data-unknown]').allTextContents()).toEqual([
      `No person and no group is called ${stranger.email}. Go back and correct it.`,
    ]);
    expect(await page.locator('form[data-send]').count()).toBe(0);

    await page.goBack();
    await page.getByRole('checkbox', { name: `grace@${domain}` }).check();
    await page.getByLabel('Add people by address').fill(`Bob@${domain}`);
    await page.getByRole('button', { name: 'See who gains' }).click();
    expect(await page.locator('section[aria-labelledby=gains] li').allTextContents()).toEqual([
      `bob@${domain}`,
    ]);
    expect(await page.locator('section[aria-labelledby=loses] li').allTextContents()).toEqual([
      `grace@${domain}`,
    ]);
    expect(await page.locator('[data-not-recalled]').count()).toBe(2);
    await page.getByRole('button', { name: 'Change the rule' }).click();
    await page.getByText('The rule is changed.').waitFor();
    expect((await accessApi(client, 'GET', target)).json.assignments).toEqual([{ user: bob }]);
    expect(pageErrors).toEqual([]);
    await stranger.profile.leave();
    await profile.leave();
  });

  it('refuses to confirm over a change of another admin, and keeps that change', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page } = profile;
    const target = await addHostGroup(client, 'prod');
    await page.goto(`/admin/access${target}/change?access=assigned`);
    await putRule(client, target, { access: 'everyone', conditions: { models: 'fips-only' } });
    await page.getByRole('button', { name: 'Change the rule' }).click();
    await page.getByText('This was changed since you opened it.').waitFor();
    expect((await accessApi(client, 'GET', target)).json.access).toBe('everyone');
    await profile.leave();
  });

  it('explains one person by kind of rule, names no group of the person, and no foreign person', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const grace = await addMember(pages.app, email, `grace@${domain}`);
    const secret = await groupOf(email, 'Layoffs', [grace]);
    await groupOf(email, 'Illness', [grace]);
    const target = await addHostGroup(client, 'prod');
    await putRule(client, target, { assignments: [{ group: secret }] });
    const stranger = await pages.newAdmin();

    await page.goto(`/admin/members/${grace}`);
    const reach = page.locator('[data-reach]');
    expect(await reach.textContent()).toContain('A group of the person is assigned.');
    expect(await page.content()).not.toMatch(/Layoffs|Illness/);
    expect(await page.content()).not.toContain(secret);
    await reach.getByRole('link', { name: 'Why?' }).click();
    await page.waitForURL(`**/admin/access${target}?user=${grace}**`);
    expect(await page.locator('[data-why]').textContent()).toBe(
      'Admitted. A group of the person is assigned.',
    );
    expect(await page.locator('[data-why]').innerHTML()).not.toContain('Layoffs');

    await page.getByLabel('Address of a member').fill(email);
    await page.getByRole('button', { name: 'Ask why' }).click();
    await page.getByText('Not admitted. The person is not assigned.').waitFor();
    for (const foreign of [stranger.email, 'no-one@access.example']) {
      await page.goto(`/admin/access${target}?address=${foreign}`);
      expect(await page.locator('[data-why]').textContent()).toBe(
        'No answer. Your organization has no such member.',
      );
    }
    await page.goto(`/admin/access${target}?user=${await idOf(pages.app, stranger.email)}`);
    await page.getByText('Your organization has no such member.').waitFor();
    expect(pageErrors).toEqual([]);
    await stranger.profile.leave();
    await profile.leave();
  });

  it('shows a number for the people of one group, and the names only after a touch', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page } = profile;
    const grace = await addMember(pages.app, email, `grace@${domain}`);
    const ops = await groupOf(email, 'Ops', [grace]);
    const target = await addHostGroup(client, 'prod');
    await putRule(client, target, { assignments: [{ group: ops }] });
    await touchedAgo(pages.app, email, 301);

    for (const path of ['', '/change?access=everyone', '/delete']) {
      await page.goto(`/admin/access${target}${path}`);
      // A forecast hides its numbers as well: by forecasts for one person after another an admin
      // could learn who is in the group.
      const words = path === '' ? '1 person' : 'shown after a touch';
      expect(await page.getByText(words).count()).toBeGreaterThan(0);
      expect(await page.locator('[data-not-recalled]').count()).toBe(0);
      expect(await page.locator('[data-count]').allTextContents()).not.toContain(
        path === '' ? undefined : '1 person',
      );
      expect(await page.content()).not.toContain(`grace@${domain}`);
      expect(await page.content()).not.toContain(grace);
    }
    await page.goto('/admin/access');
    expect(await page.locator('a[download]').count()).toBe(0);
    await page.goto(`/admin/access${target}`);
    await page.getByRole('link', { name: 'Touch your key' }).click();
    await page.waitForURL('**/login?again=true**');
    await page.getByRole('button', { name: /key/i }).first().click();
    await page.waitForURL(`**/admin/access${target}`);
    await page.getByRole('link', { name: `grace@${domain}` }).waitFor();
    await page.goto('/admin/access');
    expect(await page.locator('a[download]').count()).toBe(1);
    await profile.leave();
  });

  it('changes and deletes a role, and sets whether unlisted roles are open, by keyboard alone', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const walk = await KeyboardWalk.begin(page, '/admin/access');
    await walk.fill('#role-name', 'deploy');
    await walk.fill('#role-arn', ROLE_ARN);
    await walk.fill('#role-region', 'eu-central-1');
    await walk.press('form[data-send="POST /api/v1/org/access/aws_role"] button');
    await page.waitForURL('**/admin/access/aws_role/*');
    expect(await page.locator('pre').textContent()).toContain('sts:RoleAuthorizedByIdp');
    const path = new URL(page.url()).pathname.slice('/admin/access'.length);
    await walk.fill('#role-name', 'ship');
    await walk.fill('#role-region', ' ');
    await walk.press('form[data-send^="PATCH"] button');
    await page.getByText('The role is changed.').waitFor();
    expect((await accessApi(client, 'GET', path)).json).toMatchObject({
      name: 'ship',
      region: null,
    });
    await walk.press(`a[href$="/delete"]`);
    await page.waitForURL('**/delete');
    await walk.press('form[data-send^="DELETE"] button');
    await page.getByText('It is deleted.').waitFor();
    expect((await accessApi(client, 'GET', path)).status).toBe(404);

    await walk.choose('#aws-roles', 'Listed');
    await walk.press('form[data-send="PATCH /api/v1/org"] button');
    await page.getByText('The setting is changed.').waitFor();
    expect((await orgApi(client, 'GET', '')).json.aws_roles).toBe('listed');
    walk.print('add, change and delete a role, and list roles');
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('changes hosts and logins of a group, and finds targets by name and kind', async () => {
    const { client, profile, email } = await pages.newAdmin();
    const { page } = profile;
    const { clientId } = await addApplication(pages.app, { client_name: 'Wiki' }, { owner: email });
    const target = await addHostGroup(client, 'prod');
    await page.goto(`/admin/access${target}`);
    await page.getByLabel('Everyone in the organization', { exact: true }).waitFor();
    await page.getByLabel('Logins, one a line').fill('deploy\nubuntu');
    await page.getByRole('button', { name: 'Save the group' }).click();
    await page.getByText('The group is changed.').waitFor();
    expect((await accessApi(client, 'GET', target)).json.logins).toEqual(['deploy', 'ubuntu']);
    await page.goto('/admin/access');
    expect(await page.locator('[data-target]').count()).toBe(2);
    await page.getByLabel('Kind').selectOption('host_group');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL('**kind=host_group**');
    expect(await page.locator('[data-target]').count()).toBe(1);
    await page.goto('/admin/access?q=WIK&kind=');
    await page.getByRole('link', { name: 'Wiki' }).click();
    await page.waitForURL(`**/admin/access/application/${clientId}`);
    expect(await page.locator('a[href$="/delete"]').count()).toBe(0);
    await page.getByLabel('and people of other organizations who approve it').waitFor();
    await page.getByRole('link', { name: 'The page of the application' }).click();
    await page.waitForURL(`**/admin/applications/${clientId}`);
    await profile.leave();
  });

  it('proposes a rule for a target of 1,000 assignments, and removes people beyond the list by address', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page } = profile;
    const target = await addHostGroup(client, 'prod');
    await rows(
      pages.app.dataSource,
      `WITH people AS (
         INSERT INTO users (id, org_id, email, scim_managed)
         SELECT gen_random_uuid(), org_id, 'm' || lpad(n::text, 4, '0') || '@' || $2, true
         FROM users, generate_series(1, 1000) n WHERE email = $1 RETURNING id)
       INSERT INTO access_assignments (target_id, user_id) SELECT $3, id FROM people`,
      [email, domain, target.slice('/host_group/'.length)],
    );
    await putRule(client, target, {
      assignments: (await accessApi(client, 'GET', target)).json.assignments as object[],
    });
    await page.goto(`/admin/access${target}`);
    expect(await page.locator('[name=remove_user]').count()).toBe(100);
    await page.getByLabel('Remove people by address').fill(`m0999@${domain}`);
    await page.getByRole('button', { name: 'See who gains' }).click();
    expect(await page.locator('section[aria-labelledby=loses] li').allTextContents()).toEqual([
      `m0999@${domain}`,
    ]);
    await page.getByRole('button', { name: 'Change the rule' }).click();
    await page.getByText('The rule is changed.').waitFor();
    expect((await accessApi(client, 'GET', target)).json.assigned.users).toBe(999);
    await profile.leave();
  });

  it('answers 404 for the target and the member of another organization', async () => {
    const { profile } = await pages.newAdmin();
    const stranger = await pages.newAdmin();
    const target = await addHostGroup(stranger.client, 'prod');
    const { clientId } = await addApplication(
      pages.app,
      { client_name: 'Wiki' },
      { owner: stranger.email },
    );
    const member = await idOf(pages.app, stranger.email);
    for (const path of [
      `/admin/access${target}`,
      `/admin/access${target}/change?access=assigned`,
      `/admin/access${target}/delete`,
      `/admin/access/application/${clientId}`,
      '/admin/access/unknown/1',
      `/admin/members/${member}/reach`,
    ]) {
      expect((await profile.page.goto(path))?.status(), path).toBe(404);
    }
    await stranger.profile.leave();
    await profile.leave();
  });

  it('is accessible and small on every screen', async () => {
    const admin = await pages.newAdmin();
    const grace = await addMember(pages.app, admin.email, `grace@${admin.domain}`);
    const ops = await groupOf(admin.email, 'Ops', [grace]);
    const { clientId } = await addApplication(
      pages.app,
      { client_name: 'Wiki' },
      { owner: admin.email },
    );
    const hosts = await addHostGroup(admin.client, 'prod');
    const role = await addRole(admin.client, ROLE_ARN);
    await putRule(admin.client, hosts, {
      conditions: { touch_within_seconds: 900, models: 'fips-only' },
      assignments: [{ user: grace }, { group: ops }],
    });
    await admin.profile.leave();
    for (const path of [
      '/admin/access',
      `/admin/access${hosts}?user=${grace}`,
      `/admin/access${role}`,
      `/admin/access/application/${clientId}`,
      `/admin/access${hosts}/change?access=everyone&minutes=15&add_people=unknown`,
      `/admin/access${role}/change?access=assigned&add_group=ops`,
      `/admin/access${hosts}/delete`,
      `/admin/members/${grace}`,
      `/admin/members/${grace}/reach`,
    ]) {
      const profile = await openAs(pages.browser, pages.app, admin);
      await checkPage(profile, path);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    }
  });

  it('shows everything without JavaScript, and says that a change needs it', async () => {
    const { client, profile } = await pages.newAdmin();
    const target = await addHostGroup(client, 'prod');
    await profile.leave();
    const page = await openWithoutScripts(pages.browser, pages.app, client);
    for (const path of ['', target, `${target}/change?access=assigned`, `${target}/delete`]) {
      await page.goto(`/admin/access${path}`);
      expect(await page.locator('noscript').textContent()).toContain('needs JavaScript');
      expect(await page.locator('form[data-send] button:enabled').count()).toBe(0);
    }
    await page.context().close();
  });

  it('shows hostile names as text, and no name breaks the layout at 320 px', async () => {
    const { client, profile, email, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const grace = await addMember(pages.app, email, `grace@${domain}`);
    await rows(pages.app.dataSource, 'UPDATE users SET email = NULL, name = $2 WHERE id = $1', [
      grace,
      HOSTILE.slice(0, 1000),
    ]);
    const group = await groupOf(email, HOSTILE.slice(0, 200), [grace]);
    const metadata = { client_name: HOSTILE.slice(0, 1000) };
    const { clientId } = await addApplication(pages.app, metadata, { owner: email });
    const target = `/application/${clientId}`;
    const assignments = [{ user: grace }, { group }];
    expect((await putRule(client, target, { assignments })).status).toBe(200);
    await page.setViewportSize({ width: 320, height: 640 });
    const unknown = encodeURIComponent(HOSTILE.slice(0, 200));
    for (const path of [
      '/admin/access',
      `/admin/access?q=${encodeURIComponent('<img src=x onerror=alert(1)>')}`,
      `/admin/access${target}`,
      `/admin/access${target}?address=${unknown}`,
      `/admin/access${target}/change?access=everyone&add_people=${unknown}`,
      `/admin/access${target}/change?access=assigned&remove_user=${grace}&remove_group=${group}`,
      `/admin/members/${grace}`,
      `/admin/members/${grace}/reach`,
    ]) {
      expect((await page.goto(path))?.status(), path).toBe(200);
      expect(await page.locator('main img').count(), path).toBe(0);
      expect(await overflowing(page), path).toEqual([]);
    }
    await page.goto(`/admin/access${target}`);
    expect(await page.getByText('<img src=x').count()).toBeGreaterThan(2);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });
});
