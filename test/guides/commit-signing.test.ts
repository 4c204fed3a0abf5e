import '../support/full-scale-only.js';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { ownDomainsForLonger } from '../support/domains.js';
import { guideBlock, runCommands, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';
import { PublicName } from '../support/public-name.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { SvcHome } from '../support/svc-command.js';

const CI = guideBlock('commit-signing.md', 'ci');

requires('git', 'ssh-keygen', 'curl').describe('the guide for commit signing', () => {
  let name: PublicName;
  let app: TestApp;
  let organization: ScimOrganization;
  let id: string;
  let home: SvcHome;
  let env: Record<string, string>;

  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp();
    organization = await foundOrganization(app, 'acme.example');
    await ownDomainsForLonger(app);
    home = await SvcHome.create();
    const { json } = await organization.scim('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'ada@acme.example',
    });
    id = String(json.id);
    const ada: EnrolledUser = await app.enrolled('ada@acme.example');
    await home.logIn(app, ada);
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      `SELECT org_id FROM users WHERE email = 'ada@acme.example'`,
    );
    env = {
      ...name.env,
      ...home.env,
      GIT_CONFIG_NOSYSTEM: '1',
      ORGANIZATION: row?.org_id ?? '',
      BASE: 'main',
    };
    const identity = '[user]\n\tname = Ada\n\temail = ada@acme.example\n';
    writeFileSync(join(home.path, '.gitconfig'), `${identity}[init]\n\tdefaultBranch = main\n`);
    await run('git init -q . && git commit -q --allow-empty -m first && git switch -q -c topic');
  });
  afterAll(async () => {
    await home.remove();
    await app.close();
    await name.close();
  });

  const run = (commands: string, more = {}) =>
    runToSuccess(commands, { cwd: home.path, env: { ...env, ...more } });
  const ci = (more = {}) => runCommands(CI, { cwd: home.path, env: { ...env, ...more } });

  it('signs, verifies on a laptop and in CI, and refuses what CI must refuse', async () => {
    await run(
      guideBlock('commit-signing.md', 'setup', {
        '--sign': '--sign --yes',
        'git commit': 'git commit --allow-empty',
      }),
    );
    await run(guideBlock('commit-signing.md', 'laptop'));
    expect(await ci()).toMatchObject({ status: 0 });

    const refused = async (commands: string, text: string) => {
      await run(commands);
      const end = await ci();
      expect([end.status, end.stderr]).toEqual([1, expect.stringContaining(text)]);
      await run('git reset -q --hard HEAD^');
    };
    const commit = 'git commit -q --allow-empty -m x';
    await refused(`${commit} --no-gpg-sign`, 'is not signed by a member');
    await refused(`git -c user.email=bob@acme.example commit -q --allow-empty -m x`, 'committer');
    const lone = 'ssh-keygen -q -t ed25519 -N "" -f lone';
    await refused(`${lone}; git -c user.signingKey=lone ${commit.slice(4)}`, 'by a member');
    expect(await ci()).toMatchObject({ status: 0 });
    expect(await ci({ MAX_AGE_DAYS: '0' })).toMatchObject({ status: 1 });
    // The lists of an unknown organization cannot be fetched, so the check fails.
    expect((await ci({ ORGANIZATION: '00000000-0000-4000-8000-000000000000' })).status).toBe(22);
  });

  it('keeps the lines of a retired key, in a file of the branch that CI trusts', async () => {
    await run(guideBlock('commit-signing.md', 'retire'));
    const lines = readFileSync(join(home.path, 'retired_signers'), 'utf8');
    expect(lines).toMatch(
      /^\*@acme\.example cert-authority,namespaces="git",valid-before="\d{14}Z"/m,
    );
    copyFileSync(join(home.path, 'retired_signers'), join(home.path, 'kept'));
    const byKept = (commit: string) =>
      runCommands(`git -c gpg.ssh.allowedSignersFile=kept verify-commit ${commit}`, {
        cwd: home.path,
        env,
      });
    // By the kept lines alone, a commit from before the retirement is valid, and a later one is
    // not.
    expect(await byKept('HEAD')).toMatchObject({ status: 0 });
    const later = new Date(Date.now() + 60_000).toISOString();
    await run('git commit -q --allow-empty -m late', { GIT_COMMITTER_DATE: later });
    expect(await byKept('HEAD')).toMatchObject({ status: 1 });
    await run('git reset -q --hard HEAD^');
    await run('git switch -q main && git add retired_signers && git commit -q -m keep');
    await run('git switch -q topic && git rebase -q main');
    expect(await ci()).toMatchObject({ status: 0 });
  });

  it('refuses the commits of the last hours after the member was removed', async () => {
    expect(await ci()).toMatchObject({ status: 0 });
    expect((await organization.scim('DELETE', `/Users/${id}`)).status).toBe(204);
    const end = await ci();
    expect([end.status, end.stderr]).toEqual([1, expect.stringContaining('is not signed')]);
  });
});
