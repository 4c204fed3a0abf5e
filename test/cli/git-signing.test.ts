import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readCertificate } from '@svc/openssh';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { ownDomainsForLonger } from '../support/domains.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { commandWords, runProgram, SvcHome, type RunOptions } from '../support/svc-command.js';
import '../support/full-scale-only.js';

const USER = '[user]\n\tname = Ada\n\temail = ada@acme.example\n';

requires('git', 'ssh-keygen').describe('svc setup git --sign', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let home: SvcHome;
  let person: { readonly id: string; readonly user: EnrolledUser };
  let people = 0;

  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'acme.example');
    await ownDomainsForLonger(app);
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    people += 1;
    person = await provisioned(`ada-${people}@acme.example`);
    home = await SvcHome.create();
    await home.logIn(app, person.user);
    writeFileSync(gitconfig(), USER);
    for (const name of ['work', 'plain']) {
      await git(['init', '-q', name], { cwd: home.path });
    }
  });
  afterEach(() => home.remove());

  const provisioned = async (userName: string) => {
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
    const { json } = await organization.scim('POST', '/Users', { schemas, userName });
    return { id: String(json.id), user: await app.enrolled(userName) };
  };
  const gitconfig = () => join(home.path, '.gitconfig');
  const work = () => join(home.path, 'work');
  const git = (args: readonly string[], options: RunOptions = {}) =>
    runProgram('git', args, {
      cwd: work(),
      ...options,
      env: { ...home.env, GIT_CONFIG_NOSYSTEM: '1', ...options.env },
    });
  const commit = (options: RunOptions = {}) =>
    git(['commit', '-q', '--allow-empty', '-m', 'x'], options);
  const orgOf = async (email: string) => {
    const sent = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [email],
    );
    return sent[0]?.org_id ?? '';
  };
  /**
   * Fetches the allowed signers and the revocation list of an organization, and configures git to
   * verify by them.
   */
  const trust = async (orgId: string, krl = 'krl/signatures') => {
    const get = async (path: string) => {
      const url = `${app.baseUrl}/v1/credentials/ssh/${path}`;
      const headers = { 'x-forwarded-for': newAddress() };
      return Buffer.from(await (await fetch(url, { headers })).arrayBuffer());
    };
    writeFileSync(join(home.path, 'signers'), await get(`allowed_signers/${orgId}`));
    writeFileSync(join(home.path, 'krl'), await get(krl));
  };
  const verify = (what = 'HEAD', command = 'verify-commit') => {
    const file = (name: string) => join(home.path, name);
    const settings = {
      'gpg.ssh.allowedSignersFile': file('signers'),
      'gpg.ssh.revocationFile': file('krl'),
    };
    const named = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return git([...named, command, what]);
  };
  const stored = () => readCertificate(readFileSync(home.state(app, 'ssh/id-cert.pub'), 'utf8'));

  it('shows its lines, signs commits and tags with a certificate that it fetches, and undoes itself', async () => {
    const set = await home.run(['setup', 'git', '--sign', '--yes']);
    expect(set).toMatchObject({ status: 0 });
    expect(set.stdout).toContain('+\tgpgSign = true');
    expect(set.stdout).toContain('+exec ');
    expect(statSync(home.state(app, 'git-sign')).mode & 0o777).toBe(0o700);
    expect(existsSync(home.state(app, 'ssh'))).toBe(false);
    expect(await commit()).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await git(['tag', '-m', 'x', 'v1'])).toMatchObject({ status: 0 });
    await trust(await orgOf(`ada-${people}@acme.example`));
    const good = `Good "git" signature for ada-${people}@acme.example with ED25519-CERT key`;
    expect((await verify()).stderr).toContain(good);
    expect(await verify()).toMatchObject({ status: 0 });
    expect(await verify('v1', 'verify-tag')).toMatchObject({ status: 0 });
    expect((await home.run(['setup', 'git', '--yes'])).stdout).not.toContain('gpgSign');
    expect(await home.run(['setup', 'git', '--remove', '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(gitconfig(), 'utf8')).toBe(USER);
    expect(existsSync(home.state(app, 'git-sign'))).toBe(false);
  });

  it('--local signs in one repository alone, and is refused outside of any', async () => {
    const config = join(work(), '.git/config');
    const before = readFileSync(config, 'utf8');
    const set = ['setup', 'git', '--sign', '--local', '--yes'];
    expect(await home.run(set, { cwd: home.path })).toMatchObject({ status: 2 });
    expect(await home.run(['setup', 'git', '--local', '--yes'])).toMatchObject({ status: 2 });
    expect(await home.run(set, { cwd: work() })).toMatchObject({ status: 0 });
    expect(readFileSync(gitconfig(), 'utf8')).toBe(USER);
    await commit();
    const raw = (cwd: string) => git(['cat-file', 'commit', 'HEAD'], { cwd });
    expect((await raw(work())).stdout).toContain('BEGIN SSH SIGNATURE');
    await commit({ cwd: join(home.path, 'plain') });
    expect((await raw(join(home.path, 'plain'))).stdout).not.toContain('SIGNATURE');
    await home.run(['setup', 'git', '--remove', '--yes']);
    expect(readFileSync(config, 'utf8')).toBe(before);
  });

  it('renews a certificate that ends soon, and refuses the commit in one line when the login is over', async () => {
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    const { serial } = stored();
    await commit();
    expect(stored().serial).toBe(serial);
    rmSync(home.state(app, 'ssh/id-cert.pub'));
    await commit();
    expect(stored().serial).not.toBe(serial);
    await organization.scim('DELETE', `/Users/${person.id}`);
    rmSync(home.state(app, 'ssh/id-cert.pub'));
    const end = await commit();
    expect(end.status).toBe(128);
    expect(end.stderr).toContain('has ended your login or removed your access; run: svc login\n');
  });

  it('after a logout a commit is refused in one line and earlier ones are still verified; a new login signs again', async () => {
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    await trust(await orgOf(`ada-${people}@acme.example`));
    expect(await home.run(['logout'])).toMatchObject({ status: 0, stderr: '' });
    const end = await commit();
    expect(end.status).toBe(128);
    expect(end.stderr).toContain('svc: you are not logged in; run: svc login\n');
    expect(end.stderr).not.toContain('cannot run');
    expect(await verify()).toMatchObject({ status: 0 });
    await home.logIn(app, person.user);
    expect(await commit()).toEqual({ status: 0, stdout: '', stderr: '' });
    await home.run(['setup', 'git', '--remove', '--yes']);
    expect(existsSync(home.state(app, 'git-sign'))).toBe(false);
  });

  it('sign says in one line that the system refuses to start ssh-keygen', async () => {
    await home.run(['ssh', 'cert']);
    const file = join(home.path, 'no-folder');
    writeFileSync(file, '');
    const end = await home.run(['git', 'sign', '--', '-Y', 'sign'], { env: { PATH: file } });
    expect(end).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'svc: ssh-keygen cannot be run: a part of its path is no folder.\n     Install the OpenSSH client.\n',
    });
  });

  it('a commit is refused after the time of the certificate', async () => {
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    await trust(await orgOf(`ada-${people}@acme.example`));
    const late = new Date(stored().validBefore + 1_000).toISOString();
    const early = new Date(stored().validAfter - 1_000).toISOString();
    for (const date of [late, early]) {
      expect(await commit({ env: { GIT_COMMITTER_DATE: date } })).toMatchObject({ status: 0 });
      const end = await verify();
      expect([end.status, end.stderr]).toEqual([
        1,
        expect.stringContaining('No principal matched'),
      ]);
    }
    const inTime = new Date(stored().validBefore - 1_000).toISOString();
    await commit({ env: { GIT_COMMITTER_DATE: inTime } });
    expect(await verify()).toMatchObject({ status: 0 });
  });

  it('a commit is refused after SCIM DELETE, and stays so when the list for hosts has forgotten it', async () => {
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    const orgId = await orgOf(`ada-${people}@acme.example`);
    await trust(orgId);
    expect(await verify()).toMatchObject({ status: 0 });
    await organization.scim('DELETE', `/Users/${person.id}`);
    await trust(orgId, 'krl');
    expect(await verify()).toMatchObject({ status: 1 });
    // Years later the certificate has expired, the revocation list for hosts does not have it any
    // more, and the clean-up has deleted its row.
    await rows(app.dataSource, 'DELETE FROM ssh_certificates WHERE serial = $1', [
      stored().serial.toString(),
    ]);
    await trust(orgId, 'krl');
    expect(await verify()).toMatchObject({ status: 0 });
    await trust(orgId);
    expect(await verify()).toMatchObject({ status: 1 });
  });

  it('a commit of an expired certificate stays good when its signer leaves later', async () => {
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    const serial = stored().serial.toString();
    await rows(
      app.dataSource,
      `UPDATE ssh_certificates SET valid_before = now() - interval '1 minute' WHERE serial = $1`,
      [serial],
    );
    await organization.scim('DELETE', `/Users/${person.id}`);
    const revoked = await rows(
      app.dataSource,
      'SELECT FROM ssh_certificates WHERE serial = $1 AND revoked_at IS NOT NULL',
      [serial],
    );
    expect(revoked).toHaveLength(1);
    await trust(await orgOf('admin@acme.example'));
    expect(await verify()).toMatchObject({ status: 0 });
  });

  it('a member of another organization, and its earlier owner of a domain, are not accepted', async () => {
    await foundOrganization(app, `other-${people}.example`);
    await home.run(['setup', 'git', '--sign', '--yes']);
    await commit();
    await trust(await orgOf(`admin@other-${people}.example`));
    const end = await verify();
    expect([end.status, end.stderr]).toEqual([1, expect.stringContaining('No principal matched')]);
    // The organization owns the domain of the address since a moment after the commit.
    const orgId = await orgOf('admin@acme.example');
    await trust(orgId);
    const signers = readFileSync(join(home.path, 'signers'), 'utf8');
    expect(await verify()).toMatchObject({ status: 0 });
    const later = new Date(Date.now() + 60_000).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '');
    writeFileSync(
      join(home.path, 'signers'),
      signers.replace(/valid-after="\d+Z"/, `valid-after="${later}Z"`),
    );
    expect(await verify()).toMatchObject({ status: 1 });
  });

  it('signers prints the addresses of the own organization', async () => {
    const { stdout } = await home.run(['git', 'signers', '--json']);
    const orgId = await orgOf(`ada-${people}@acme.example`);
    expect(JSON.parse(stdout)).toEqual({
      allowed_signers: `${app.baseUrl}/v1/credentials/ssh/allowed_signers/${orgId}`,
      revoked_signatures: `${app.baseUrl}/v1/credentials/ssh/krl/signatures`,
    });
  });

  it('works from a folder whose name has spaces and quotes', async () => {
    const folder = join(home.path, "my 'own' tools");
    mkdirSync(folder);
    writeFileSync(join(folder, 'svc'), readFileSync(home.program), { mode: 0o755 });
    const [program, ...first] = commandWords(join(folder, 'svc'));
    const args = [...first, 'setup', 'git', '--sign', '--yes'];
    const set = await runProgram(program, args, { env: home.env });
    expect(set).toMatchObject({ status: 0 });
    expect(await commit()).toMatchObject({ status: 0 });
  });
});
