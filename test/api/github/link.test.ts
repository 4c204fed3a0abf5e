import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GitHubStandIn } from '@svc/stand-ins/github';
import type { StandInInstallation } from '@svc/stand-ins/github-state';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { authorize, link } from '../../support/github.js';
import { count, rows } from '../../support/rows.js';

const LINK = '/v1/credentials/github/link';

describe('the link of a GitHub installation', () => {
  let github: GitHubStandIn;
  let app: TestApp;
  let admin: EnrolledUser;
  let installation: StandInInstallation;
  let domain: string;
  let founded = 0;
  beforeAll(async () => {
    github = await GitHubStandIn.start();
    app = await startTestApp({ environment: github.environment });
  });
  beforeEach(async () => {
    founded += 1;
    domain = `linked-${founded}.example`;
    admin = await app.enrolled(`admin@${domain}`);
    await app.dataSource.query('DELETE FROM github_installations');
    github.state.pageSize = 100;
    installation = github.state.install(`org-${github.state.newId()}`);
  });
  afterAll(async () => {
    await app.close();
    await github.close();
  });

  const owners = () =>
    rows<{ owner: string }>(app.dataSource, 'SELECT owner FROM github_installations').then(
      (found) => found.map(({ owner }) => owner),
    );
  /**
   * Makes the user of the browser at GitHub one who sees these installations and owns their
   * accounts.
   */
  const own = (...all: StandInInstallation[]) => {
    github.state.browserUser = {
      id: 7,
      login: 'owner',
      sees: all.map(({ id }) => id),
      owns: all.map(({ account }) => account.id),
    };
  };

  it('is made by an admin who sees the installation at GitHub, and is recorded', async () => {
    const page = await link(github, admin, installation);
    expect(page.status).toBe(200);
    expect(page.text).toContain(installation.account.login);
    expect(await owners()).toEqual([installation.account.login]);
    const [event] = await rows(
      app.dataSource,
      "SELECT details FROM audit_events WHERE type = 'github_installation_linked' ORDER BY created_at DESC LIMIT 1",
    );
    expect(event).toMatchObject({ details: { installation_id: installation.id } });
  });

  it('revokes the token of the GitHub user at once, and stores it nowhere', async () => {
    await link(github, admin, installation);
    const tokens = [...github.state.userTokens];
    expect(tokens.length).toBeGreaterThan(0);
    expect(tokens.every(([, { revoked }]) => revoked)).toBe(true);
    const log = app.log.join('');
    expect(tokens.filter(([token]) => log.includes(token))).toEqual([]);
  });

  it('uses PKCE with S256, and a state that works once', async () => {
    own(installation);
    const begun = await admin.client.post(LINK, {});
    const url = new URL(begun.json.authorization_url as string);
    expect(url.origin).toBe(github.url);
    expect(url.searchParams.get('code_challenge_method')).toBe('S256');
    const consent = await admin.client.get(url.href);
    const callback = consent.headers.get('location') ?? '';
    const answers = await Promise.all(Array.from({ length: 5 }, () => admin.client.get(callback)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400, 400]);
  });

  it('refuses the state in another session, also of another admin', async () => {
    own(installation);
    const other = await app.enrolled('admin@thief.example');
    const begun = await admin.client.post(LINK, {});
    const { status } = await other.client.follow(begun.json.authorization_url as string);
    expect(status).toBe(400);
    expect(await owners()).toEqual([]);
  });

  it('refuses an installation that GitHub does not show to the admin, named by id or owner', async () => {
    const foreign = github.state.install('foreign-org');
    own(installation);
    const byId = await authorize(admin.client, { installation_id: foreign.id });
    const byOwner = await authorize(admin.client, { owner: 'foreign-org' });
    expect([byId.status, byOwner.status]).toEqual([404, 404]);
    expect(await owners()).toEqual([]);
    expect([...github.state.userTokens.values()].every(({ revoked }) => revoked)).toBe(true);
  });

  it('refuses a collaborator, who sees the installation and does not own the account', async () => {
    const ofUser = github.state.install('someone', { type: 'User' });
    const sees = [installation.id, ofUser.id];
    github.state.browserUser = { id: 8, login: 'collaborator', sees, owns: [] };
    const ofOrganization = await authorize(admin.client, { installation_id: installation.id });
    const ofOther = await authorize(admin.client, { installation_id: ofUser.id });
    expect([ofOrganization.status, ofOther.status]).toEqual([403, 403]);
    github.state.browserUser = { id: ofUser.account.id, login: 'someone', sees, owns: [] };
    expect((await authorize(admin.client, { owner: 'someone' })).status).toBe(200);
  });

  it('finds an installation on the third page of the list', async () => {
    const more = Array.from({ length: 4 }, (_, n) => github.state.install(`more-${n}`));
    github.state.pageSize = 2;
    own(installation, ...more);
    const page = await authorize(admin.client, { owner: 'more-3' });
    expect(page.status).toBe(200);
    const unnamed = await authorize(admin.client, {});
    expect(unnamed.status).toBe(400);
    expect(unnamed.text).toContain('more-0');
  });

  it('leaves out an installation of an enterprise, which has a slug in place of a login', async () => {
    const other = github.state.install('megacorp');
    Object.assign(other, { account: { id: 40, slug: 'megacorp', name: 'Megacorp' } });
    const sees = [other.id, installation.id];
    const owns = [installation.account.id];
    github.state.browserUser = { id: 7, login: 'owner', sees, owns };
    const page = await authorize(admin.client, {});
    expect(page.status).toBe(200);
    expect(await owners()).toEqual([installation.account.login]);
  });

  it('takes the installation that GitHub names in the callback of an installation', async () => {
    const second = github.state.install('second-org');
    own(installation, second);
    const begun = await admin.client.post(LINK, {});
    const consent = await admin.client.get(begun.json.authorization_url as string);
    const callback = new URL(consent.headers.get('location') ?? '');
    callback.searchParams.set('installation_id', String(second.id));
    callback.searchParams.set('setup_action', 'install');
    expect((await admin.client.get(callback.href)).status).toBe(200);
    expect(await owners()).toEqual(['second-org']);
  });

  it('gives an installation to one organization: of two at once, the other one is refused', async () => {
    const other = await app.enrolled('admin@second.example');
    own(installation);
    const callbacks = [];
    for (const { client } of [admin, other]) {
      const begun = await client.post(LINK, {});
      const consent = await client.get(begun.json.authorization_url as string);
      callbacks.push({ client, callback: consent.headers.get('location') ?? '' });
    }
    const answers = await Promise.all(
      callbacks.map(({ client, callback }) => client.get(callback)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(await count(app.dataSource, 'github_installations')).toBe(1);
  });

  it('is for admins with a touch of the last 5 minutes', async () => {
    const sessions = `UPDATE sessions SET auth_time = auth_time - interval '301 seconds'`;
    await app.dataSource.query(sessions);
    const stale = await admin.client.post(LINK, {});
    expect([stale.status, stale.json.code]).toEqual([401, 'insufficient_user_authentication']);
    expect(stale.headers.get('www-authenticate')).toContain('max_age="300"');
    await admin.client.logIn(admin.key);
    const { client: member } = await app.enrolled(`member@${domain}`);
    expect((await member.post(LINK, {})).json.code).toBe('admin_required');
  });

  it('ends with 502 when GitHub fails, and links nothing', async () => {
    own(installation);
    const begun = await admin.client.post(LINK, {});
    const consent = await admin.client.get(begun.json.authorization_url as string);
    github.state.fault = 'bad-gateway';
    const answer = await admin.client.get(consent.headers.get('location') ?? '');
    github.state.fault = 'none';
    expect(answer.status).toBe(502);
    expect(answer.text).not.toContain('planted');
    expect(await owners()).toEqual([]);
  });
});
