import { afterAll, expect, it } from 'vitest';
import { startTestApp } from '../../support/app.js';
import {
  consoleSetUp,
  HOSTILE,
  KeyboardWalk,
  openAs,
  openWithoutScripts,
} from '../../support/console.js';
import { DnsServer } from '../../support/dns-server.js';
import { dnsModule, proven } from '../../support/domains.js';
import '../../support/full-scale-only.js';
import { addMember, orgApi } from '../../support/org-api.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';

requires('chromium').describe('the pages of settings, domains and providers in Chromium', () => {
  let dns: DnsServer;
  afterAll(() => dns.close());
  const pages = consoleSetUp('settings', async () => {
    dns = await DnsServer.start();
    return startTestApp({
      modules: [dnsModule({ servers: [dns.address] })],
      furtherProviders: ['second'],
    });
  });

  it('changes the name and the membership mode by keyboard alone at 390 px', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const walk = await KeyboardWalk.begin(page, '/admin/settings');
    await walk.fill('#name', 'Engines & Co');
    await page.keyboard.press('Enter');
    await page.getByText('The name is saved.').waitFor();
    await walk.press('form:has([name=membership]) button');
    await page.locator('[data-membership="scim_only"]').waitFor();
    walk.print('change the name and the membership mode');
    expect((await orgApi(client, 'GET', '')).json).toEqual({
      name: 'Engines & Co',
      membership: 'scim_only',
      device_grant: true,
      aws_roles: 'any',
    });
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('refuses to save over a change of another admin, and keeps that change', async () => {
    const { client, profile } = await pages.newAdmin();
    const { page } = profile;
    await page.goto('/admin/settings');
    await orgApi(client, 'PATCH', '', { name: 'First' });
    await page.getByLabel('Name of your organization').fill('Second');
    await page.getByRole('button', { name: 'Save the name' }).click();
    await page.getByText('This was changed since you opened it.').waitFor();
    expect((await orgApi(client, 'GET', '')).json.name).toBe('First');
    await profile.leave();
  });

  it('adds, proves and removes a domain by keyboard alone, and says what ends and what ended', async () => {
    const { client, profile, email, domain: ownDomain } = await pages.newAdmin();
    const { page, pageErrors } = profile;
    const domain = `lab-${ownDomain}`;
    const walk = await KeyboardWalk.begin(page, '/admin/domains');
    await walk.fill('#domain', domain);
    await walk.press('form[data-send="POST /api/v1/org/domains"] button');
    await page.waitForURL(`**/admin/domains/${domain}`);
    const name = (await page.locator('#record-name').textContent()) ?? '';
    const value = (await page.locator('#record-value').textContent()) ?? '';
    dns.replies.set(name, { texts: [value] });
    await walk.press('form[data-send$="/verify"] button');
    await page.locator('[data-state="verified"]').waitFor();

    await pages.app.enrolled(`grace@${domain}`);
    expect(
      await rows(pages.app.dataSource, 'SELECT 1 FROM users WHERE email = $1', [email]),
    ).toHaveLength(1);
    await page.reload();
    expect(await page.locator('[data-ends]').textContent()).toContain(
      '1 member loses access: 1 session',
    );
    await walk.press('form[data-send^="DELETE"] button');
    await page.getByText('The domain is removed. Ended: 1 member, 1 session.').waitFor();
    walk.print('add, prove and remove a domain');
    expect(page.url()).toBe(`${pages.app.baseUrl}/admin/domains`);
    const { domains } = (await orgApi(client, 'GET', '/domains')).json;
    expect(domains).toHaveLength(1);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('shows why a domain is not verified, and changes nothing', async () => {
    const { client, profile, domain: ownDomain } = await pages.newAdmin();
    const { page } = profile;
    const domain = `unproven-${ownDomain}`;
    await orgApi(client, 'POST', '/domains', { domain });
    await page.goto(`/admin/domains/${domain}`);
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.getByText('has no TXT record').waitFor();
    expect(await page.locator('[data-state="pending"]').count()).toBe(1);
    await profile.leave();
  });

  it('allows and withdraws an identity provider by keyboard alone, and says what ends and what ended', async () => {
    const { client, profile, domain } = await pages.newAdmin();
    const { page, pageErrors } = profile;

    const walk = await KeyboardWalk.begin(page, '/admin/providers');
    const slug = await page.locator('#provider option').last().textContent();
    await walk.choose('#provider', slug ?? '');
    await walk.press('form[data-send="POST /api/v1/org/providers"] button');
    await page.getByText('The identity provider is allowed.').waitFor();

    const grace = pages.app.client();
    await grace.signIn(`grace@${domain}`, '/', 'second');
    expect((await grace.enroll(pages.app.newKey())).status).toBe(200);
    await page.reload();
    await walk.press('tr:last-child a[href^="/admin/providers/"]');
    await page.waitForURL('**/admin/providers/*');
    expect(await page.locator('[data-ends]').textContent()).toContain(
      '1 member loses access: 1 session',
    );
    await walk.press('form[data-send^="DELETE"] button');
    await page
      .getByText('The identity provider is withdrawn. Ended: 1 member, 1 session.')
      .waitFor();
    walk.print('allow and withdraw an identity provider');
    expect((await grace.get('/v1/keys')).status).toBe(401);

    await page.locator('[data-provider] a').click();
    await page.locator('[data-obstacle]').waitFor();
    expect(await page.locator('form[data-send^="DELETE"]').count()).toBe(0);
    expect((await orgApi(client, 'GET', '/providers')).json.providers).toHaveLength(1);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  it('is accessible and small on every screen', async () => {
    const admin = await pages.newAdmin();
    const domain = `accessible-${admin.domain}`;
    await proven(admin.client, dns, domain);
    await addMember(pages.app, admin.email, `grace@${domain}`);
    const [provider] = (await orgApi(admin.client, 'GET', '/providers')).json.providers as {
      id: string;
    }[];
    await admin.profile.leave();
    const paths = [
      '/admin/settings',
      '/admin/domains',
      `/admin/domains/${domain}`,
      '/admin/providers',
      `/admin/providers/${provider?.id}`,
    ];
    for (const path of paths) {
      const profile = await openAs(pages.browser, pages.app, admin);
      await checkPage(profile, path);
      expect(profile.pageErrors).toEqual([]);
      await profile.leave();
    }
  });

  it('shows everything without JavaScript, and says that a change needs it', async () => {
    const { client, profile, domain } = await pages.newAdmin();
    await profile.leave();
    const page = await openWithoutScripts(pages.browser, pages.app, client);
    for (const path of ['/admin/settings', '/admin/domains', '/admin/providers']) {
      await page.goto(path);
      expect(await page.locator('noscript').textContent()).toContain('needs JavaScript');
      expect(await page.locator('form[data-send] button:enabled').count()).toBe(0);
    }
    await page.goto('/admin/domains');
    await page.getByRole('rowheader', { name: domain }).waitFor();
    await page.context().close();
  });

  it('shows hostile names as text, and no name breaks the layout at 320 px', async () => {
    const admin = await pages.newAdmin();
    const { page, pageErrors } = admin.profile;
    await rows(
      pages.app.dataSource,
      'UPDATE organizations SET name = $2 WHERE id = (SELECT org_id FROM users WHERE email = $1)',
      [admin.email, HOSTILE],
    );
    const [provider] = await rows<{ id: string }>(
      pages.app.dataSource,
      `INSERT INTO organization_providers (id, org_id, issuer, tenant, founding)
       SELECT gen_random_uuid(), org_id, $2, $3, false FROM users WHERE email = $1 RETURNING id`,
      [admin.email, `https://${HOSTILE.slice(0, 800)}`, HOSTILE.slice(0, 800)],
    );
    await page.setViewportSize({ width: 320, height: 640 });
    for (const path of [
      '/admin/settings',
      '/admin/providers',
      `/admin/providers/${provider?.id}`,
    ]) {
      await page.goto(path);
      expect(await page.locator('main img').count()).toBe(0);
      expect(await overflowing(page)).toEqual([]);
    }
    expect(await page.getByText('<img src=x').count()).toBeGreaterThan(0);
    await page.goto('/admin/settings');
    expect((await page.getByLabel('Name of your organization').inputValue()).slice(0, 10)).toBe(
      HOSTILE.slice(0, 10),
    );
    expect(pageErrors).toEqual([]);
    await admin.profile.leave();
  });
});
