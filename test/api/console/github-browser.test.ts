import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GitHubStandIn } from '@svc/stand-ins/github';
import type { StandInInstallation } from '@svc/stand-ins/github-state';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { startBrowser, type BrowserProfile } from '../../support/browser.js';
import { HOSTILE, KeyboardWalk, openAs, openWithoutScripts } from '../../support/console.js';
import '../../support/full-scale-only.js';
import { allowAll, askToken, link } from '../../support/github.js';
import { touchedAgo } from '../../support/keys.js';
import { checkPage, overflowing } from '../../support/page-checks.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';

const PAGE = '/admin/github';
/**
 * The longest account name that the service accepts from GitHub: it has markup, a change of text
 * direction and no place for a line break.
 */
const HOSTILE_LOGIN = HOSTILE.slice(0, 100);

requires('chromium').describe('the page of GitHub in Chromium', () => {
  let github: GitHubStandIn;
  let app: TestApp;
  let browser: Browser;
  beforeAll(async () => {
    github = await GitHubStandIn.start();
    app = await startTestApp({ environment: github.environment });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await github.close();
  });

  let organizations = 0;
  /**
   * Founds an organization with an admin, and installs the GitHub App in an account that the admin
   * owns at GitHub.
   */
  async function newAdmin(
    login = `engines-${organizations + 1}`,
  ): Promise<EnrolledUser & { email: string; installation: StandInInstallation }> {
    organizations += 1;
    const email = `ada@github-${organizations}.example`;
    const installation = github.state.install(login);
    const { id, account } = installation;
    github.state.browserUser = { id: 7, login: 'owner', sees: [id], owns: [account.id] };
    return { ...(await app.enrolled(email)), email, installation };
  }

  /** Links the admin's installation through the API. */
  async function linked(admin: EnrolledUser & { installation: StandInInstallation }) {
    const { status } = await link(github, admin, admin.installation);
    expect(status).toBe(200);
  }

  const isLinked = async ({ id }: StandInInstallation) =>
    (await count(app.dataSource, 'github_installations WHERE id = $1', [id])) === 1;

  it('links and unlinks an installation by keyboard alone at 390 px, and says what ends and what ended', async () => {
    const admin = await newAdmin();
    const { installation, email } = admin;
    const profile = await openAs(browser, app, admin);
    const { page, pageErrors } = profile;
    await touchedAgo(app, email, 301);
    const walk = await KeyboardWalk.begin(page, PAGE);
    await walk.fill('#owner', installation.account.login);
    await walk.press('form[data-open] button');
    await page.getByRole('heading', { name: 'GitHub is linked' }).waitFor();
    expect(await isLinked(installation)).toBe(true);
    await walk.press('main a[href="/admin/github"]');
    await page.getByRole('rowheader', { name: installation.account.login }).waitFor();

    const other = app.client(); // the touch has replaced the session of `admin.client`
    await other.logIn(admin.key);
    expect((await allowAll(other, true)).status).toBe(200);
    const token = (await askToken(other)).json.token as string;
    await page.reload();
    const row = page.locator(`[data-installation="${installation.id}"]`);
    expect(await row.locator('[data-ends]').textContent()).toBe('1 token ends at GitHub.');
    await walk.press('[data-installation] summary');
    await walk.press('[data-installation] form button');
    await page.getByText('The installation is unlinked. Ended: 1 GitHub token.').waitFor();
    walk.print('link and unlink a GitHub installation');
    expect(await row.count()).toBe(0);
    expect(await isLinked(installation)).toBe(false);
    await expect.poll(() => github.state.liveToken(token)).toBeUndefined();
    // the demand for a touch
    expect(pageErrors.filter((error) => !error.includes(' 401 '))).toEqual([]);
    await profile.leave();
  });

  it('allows tokens for every repository by keyboard after a touch, and ends them with the next change', async () => {
    const admin = await newAdmin();
    await linked(admin);
    const profile = await openAs(browser, app, admin);
    const { page, pageErrors } = profile;
    const other = app.client();
    await other.logIn(admin.key);
    expect((await askToken(other)).status).toBe(400);
    await touchedAgo(app, admin.email, 301);
    const walk = await KeyboardWalk.begin(page, PAGE);
    expect(await page.locator('[data-all-repositories]').textContent()).toContain('Named:');
    await walk.press('form[data-send$="/settings"] button');
    await page.getByText('The setting is changed.').waitFor();
    await page.goto(PAGE);
    await page.locator('[data-all-repositories="true"]').waitFor();
    const answer = await askToken(other);
    expect(answer.status).toBe(200);
    const token = answer.json.token as string;
    expect(github.state.liveToken(token)).toBeDefined();

    await walk.press('form[data-send$="/settings"] button');
    await page.getByText('The setting is changed. Ended: 1 GitHub token.').waitFor();
    walk.print('allow tokens for every repository, and require names again');
    await page.goto(PAGE);
    await page.locator('[data-all-repositories="false"]').waitFor();
    await expect.poll(() => github.state.liveToken(token)).toBeUndefined();
    expect((await askToken(other)).status).toBe(400);
    // the demand for a touch
    expect(pageErrors.filter((error) => !error.includes(' 401 '))).toEqual([]);
    await profile.leave();
  });

  it('says why an installation is not linked, leads back, and links nothing', async () => {
    const admin = await newAdmin();
    const foreign = github.state.install('foreign-owner');
    const profile = await openAs(browser, app, admin);
    const { page } = profile;
    const walk = await KeyboardWalk.begin(page, PAGE);
    await walk.fill('#owner', 'no login');
    await page.keyboard.press('Enter');
    await page.getByText('must be a GitHub login').waitFor();
    await walk.fill('#owner', 'foreign-owner');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/callback?*');
    await walk.press('main a[href="/admin/github"]');
    await page.waitForURL(`**${PAGE}`);
    expect(await isLinked(foreign)).toBe(false);
    expect(await page.locator('[data-installation]').count()).toBe(0);
    await profile.leave();
  });

  it('is accessible and small on every screen: without an installation, with some, and without a GitHub App', async () => {
    const admin = await newAdmin();
    const without = await check(app, admin, (page) => page.locator('#owner').waitFor());
    expect(without).toEqual([]);
    await linked(admin);
    await rows(
      app.dataSource,
      `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, suspended_at, changed_at, linked_by)
       SELECT id + 1000000, org_id, account_id + 1000000, 'away', 'selected', now(), changed_at, linked_by
       FROM github_installations WHERE id = $1`,
      [admin.installation.id],
    );
    await check(app, admin, async (page) => {
      await page.getByText('Suspended at GitHub').waitFor();
      await page.evaluate(
        'for (const one of document.querySelectorAll("details")) one.open = true',
      );
    });
    const plain = await startTestApp();
    try {
      const other = await plain.enrolled('ada@plain.example');
      await check(plain, other, (page) => page.getByText('configured no GitHub App').waitFor());
    } finally {
      await plain.close();
    }
  });

  /**
   * Runs the checks of every page on {@link PAGE} for a user, in each screen width.
   *
   * @returns the errors of its scripts
   */
  async function check(
    at: TestApp,
    user: EnrolledUser,
    ready: (page: BrowserProfile['page']) => Promise<unknown>,
  ): Promise<string[]> {
    const profile = await openAs(browser, at, user);
    await checkPage(profile, PAGE, ready);
    await profile.leave();
    return profile.pageErrors;
  }

  it('shows a hostile owner as text, which breaks no layout at 320 px', async () => {
    const admin = await newAdmin(HOSTILE_LOGIN);
    const profile = await openAs(browser, app, admin);
    const { page, pageErrors } = profile;
    await page.setViewportSize({ width: 320, height: 640 });
    await page.goto(PAGE);
    await page.getByRole('button', { name: 'Go on at GitHub' }).click();
    await page.getByRole('heading', { name: 'GitHub is linked' }).waitFor();
    await expectText(page, HOSTILE_LOGIN);
    await page.goto(PAGE);
    await expectText(page, HOSTILE_LOGIN);
    const longest = 'UPDATE github_installations SET owner = $2 WHERE id = $1';
    await rows(app.dataSource, longest, [admin.installation.id, HOSTILE]);
    await page.goto(PAGE);
    await page.locator('[data-installation] summary').click();
    await expectText(page, HOSTILE);
    expect(pageErrors).toEqual([]);
    await profile.leave();
  });

  /**
   * Checks that the page shows a name in full as text, and that no markup in the name became an
   * element.
   */
  async function expectText(page: BrowserProfile['page'], name: string): Promise<void> {
    expect((await page.locator('main bdi').allTextContents()).includes(name)).toBe(true);
    expect(await page.locator('main img').count()).toBe(0);
    expect(await overflowing(page)).toEqual([]);
  }

  it('takes no name of more than 100 characters from GitHub', async () => {
    const admin = await newAdmin(HOSTILE);
    const { status } = await link(github, admin, {
      ...admin.installation,
      account: { ...admin.installation.account, login: 'owner' },
    });
    expect(status).toBe(502);
    expect(await isLinked(admin.installation)).toBe(false);
  });

  it('shows everything without JavaScript, and says that a change needs it', async () => {
    const admin = await newAdmin();
    await linked(admin);
    const page = await openWithoutScripts(browser, app, admin.client);
    await page.goto(PAGE);
    await page.getByRole('rowheader', { name: admin.installation.account.login }).waitFor();
    expect(await page.locator('noscript').textContent()).toContain('needs JavaScript');
    expect(await page.locator('form[data-send] button:enabled').count()).toBe(0);
    await page.context().close();
  });
});
