import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { issueAttestationLeaf } from '@svc/stand-ins/attestation-authority';
import { makeHostGroup, type RuleValues } from '../support/access-rows.js';
import { ageTouches } from '../support/access-targets.js';
import type { EnrolledUser } from '../support/app.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { HARDWARE_SSH_NEEDS, startHardwareSsh, type HardwareSsh } from '../support/hardware-ssh.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { SecurityKeyProvider, SIGNATURE_FLAGS } from '../support/security-key-provider.js';
import { AAGUID, aaguidBytes } from '../support/soft-key.js';
import { SecurityKeyVendor } from '../support/ssh-security-key.js';
import { runProgram, SvcHome } from '../support/svc-command.js';
import '../support/full-scale-only.js';

const PRINCIPAL = 'ada@sk.example';

/**
 * The command makes the SSH key in a library that OpenSSH loads in place of a real security key.
 */
requires(...HARDWARE_SSH_NEEDS).describe('svc setup ssh --sk', () => {
  let world: HardwareSsh;
  let ada: EnrolledUser;
  let home: SvcHome;
  beforeAll(async () => {
    world = await startHardwareSsh(PRINCIPAL);
    ada = await world.app.enrolled(PRINCIPAL);
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    home = await SvcHome.create();
    await home.logIn(world.app, ada);
    mkdirSync(join(home.path, '.ssh'), { mode: 0o700 });
    const lines = [
      'Host target',
      '  HostName 127.0.0.1',
      `  Port ${world.sshd.port}`,
      `  User ${userInfo().username}`,
      '  StrictHostKeyChecking no',
      '  UserKnownHostsFile /dev/null',
      '  LogLevel ERROR',
      '  IdentityAgent none',
      '  SecurityKeyProvider $SSH_SK_PROVIDER',
    ];
    writeFileSync(configFile(), `${lines.join('\n')}\n`, { mode: 0o600 });
  });
  afterEach(() => home.remove());

  const configFile = () => join(home.path, '.ssh/config');
  const setUp = (provider = world.provider) =>
    home.run(['setup', 'ssh', '--sk', '--host', 'target', '--yes'], {
      env: provider.environment(),
    });
  const publicKey = () => readFileSync(home.state(world.app, 'ssh/id.pub'), 'utf8');
  const ssh = (flags?: string) =>
    runProgram('ssh', ['-F', configFile(), 'target', 'echo', 'in'], {
      env: { ...home.env, ...world.provider.environment(flags) },
    });

  it('makes a key that the service proves, and ssh logs in with its PIN alone', async () => {
    expect(await setUp()).toMatchObject({ status: 0 });
    const [proven] = await rows(world.app.dataSource, 'SELECT * FROM ssh_attested_keys');
    expect(proven).toMatchObject({ aaguid: AAGUID, verify_required: true });
    const printed = execFileSync(
      'ssh-keygen',
      ['-L', '-f', home.state(world.app, 'ssh/id-cert.pub')],
      { encoding: 'utf8' },
    );
    expect(printed).toContain('sk-ssh-ed25519-cert-v01@openssh.com');
    expect(printed).toMatch(/Critical Options: *\n\s+verify-required\n/);

    expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
    expect((await ssh(SIGNATURE_FLAGS.touched)).status).toBe(255);
    // The second certificate for the same key needs no new attestation.
    rmSync(home.state(world.app, 'ssh/id-cert.pub'));
    expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
  });

  requires('jq').describe('by hand', () => {
    it('the commands of the page make a key and a certificate, with the login of svc', async () => {
      const commands = guideBlock('../credentials/ssh-hardware-keys.md', 'by-hand');
      const env = { ...home.env, ...world.provider.environment() };
      await runToSuccess(commands, { cwd: home.path, env });
      const answer = JSON.parse(readFileSync(join(home.path, 'answer.json'), 'utf8'));
      expect(answer.attestation).toMatchObject({ aaguid: AAGUID, verify_required: true });
      const key = ['-o', 'IdentitiesOnly=yes', '-i', join(home.path, '.ssh/id_svc_sk')];
      const login = ['-F', configFile(), ...key, 'target', 'echo', 'in'];
      expect(await runProgram('ssh', login, { env })).toMatchObject({ status: 0, stdout: 'in\n' });
    });
  });

  it('keeps the key in a second setup and at a renewal', async () => {
    await setUp();
    const key = publicKey();
    expect((await home.run(['setup', 'ssh', '--yes'])).stdout).toContain('Nothing to change.');
    expect((await home.run(['ssh', 'cert', '--renew'])).status).toBe(0);
    expect(publicKey()).toBe(key);
  });

  it('never puts a key of software in the place of a lost one', async () => {
    await setUp();
    rmSync(home.state(world.app, 'ssh/id'));
    expect(await home.run(['ssh', 'check', 'target'])).toEqual({
      status: 1,
      stdout: '',
      stderr: 'svc: The SSH key is missing; run: svc setup ssh --sk\n',
    });
    await setUp();
    expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
  });

  it('changes nothing when the service refuses the attestation', async () => {
    const [before, config] = [home.config, configFile()].map((path) => readFileSync(path, 'utf8'));
    const foreign = new SecurityKeyVendor(new Date(), 'Foreign Root');
    const leaf = issueAttestationLeaf(aaguidBytes(AAGUID), foreign.now, foreign.root);
    const folder = join(home.path, 'foreign');
    mkdirSync(folder);
    const end = await setUp(SecurityKeyProvider.build(folder, leaf));
    expect(end.status).toBe(4);
    expect(end.stderr).toMatch(/^svc: .*Foreign Root/m);
    expect(existsSync(home.state(world.app, 'ssh/id'))).toBe(false);
    expect([home.config, configFile()].map((path) => readFileSync(path, 'utf8'))).toEqual([
      before,
      config,
    ]);
  });

  describe('for a user with more names than one certificate carries', () => {
    const groups: string[] = [];
    beforeEach(async () => {
      await addGroup('many', 200);
      await addGroup('more', 200);
      await addGroup('closed', 1, { access: 'assigned' });
      await setHosts(['{*.many.example}', '{target}', '{*}']);
    });

    async function addGroup(name: string, size: number, rule: RuleValues = {}): Promise<void> {
      const { dataSource } = world.app;
      const [{ id } = { id: '' }] = await rows<{ id: string }>(
        dataSource,
        'SELECT org_id AS id FROM users WHERE email = $1',
        [PRINCIPAL],
      );
      const logins = Array.from({ length: size }, (_, n) => `u${n}`);
      groups.push(await makeHostGroup(dataSource, id, name, logins, rule));
    }
    afterEach(() =>
      world.app.dataSource.query('DELETE FROM access_targets WHERE id = ANY ($1)', [
        groups.splice(0),
      ]),
    );

    const setHosts = (hosts: readonly string[]) =>
      world.app.dataSource.query(
        `UPDATE access_targets t SET hosts = g.hosts::text[]
         FROM unnest($1::uuid[], $2::text[]) g (id, hosts) WHERE t.id = g.id`,
        [groups, hosts],
      );

    it('makes a key that the service proves, and ssh gets a certificate for each host', async () => {
      expect(await setUp()).toMatchObject({ status: 0 });
      expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
      expect(existsSync(home.state(world.app, 'ssh/id-cert.pub'))).toBe(false);
      expect((await home.run(['ssh', 'cert'])).stderr).toContain('svc ssh cert HOST');
    });

    it.each([
      ['for all hosts, because those of the group do not count', 40],
      ['for a host of another group', 200],
    ])('makes a key %s, if the login is too old for the smallest group', async (_, size) => {
      await world.app.dataSource.query('DELETE FROM access_targets WHERE id = ANY ($1)', [
        groups.splice(1),
      ]);
      await addGroup('other', size);
      await addGroup('prod', 30, { touchWithin: 300 });
      await setHosts(['{target}', '{*.other.example}', '{*.prod.example}']);
      await ageTouches(world.app, PRINCIPAL, 600);
      expect(await setUp()).toMatchObject({ status: 0 });
      expect(existsSync(home.state(world.app, 'ssh/id-cert.pub'))).toBe(size === 40);
      expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
    });

    it('says what to do if every host has too many', async () => {
      await setHosts(['{*}', '{*}', '{*}']);
      const end = await setUp();
      expect(end.status).toBe(4);
      expect(end.stderr).toMatch(/^svc: .*\n.*svc setup ssh --sk --principal NAME/m);
      expect(end.stderr).not.toContain('touch it');
      expect(existsSync(home.state(world.app, 'ssh/id'))).toBe(false);
    });
  });

  it('states in one line that the service demands a security key', async () => {
    await home.run(['setup', 'ssh', '--host', 'target', '--yes']);
    const end = await home.run(['ssh', 'check', 'target']);
    expect(end).toMatchObject({ status: 4, stdout: '' });
    expect(end.stderr).toMatch(/^svc: .*svc setup ssh --sk.*\n$/);
  });
});
