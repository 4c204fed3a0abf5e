import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { HARDWARE_SSH_NEEDS, startHardwareSsh, type HardwareSsh } from '../support/hardware-ssh.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { SIGNATURE_FLAGS } from '../support/security-key-provider.js';
import { AAGUID } from '../support/soft-key.js';
import { runProgram, SvcHome } from '../support/svc-command.js';

const PRINCIPAL = 'ada@sk.example';

/** The command makes the key in a library that OpenSSH takes for a security key. */
requires(...HARDWARE_SSH_NEEDS).describe('svc setup ssh --sk', () => {
  let world: HardwareSsh;
  let home: SvcHome;
  beforeAll(async () => {
    world = await startHardwareSsh(PRINCIPAL);
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    home = await SvcHome.create();
    await home.logIn(world.app, await world.app.enrolled(PRINCIPAL));
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
  const setUp = () =>
    home.run(['setup', 'ssh', '--sk', '--host', 'target', '--yes'], {
      env: world.provider.environment(),
    });
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
      ['-L', '-f', home.state(world.app, 'ssh/certificate.pub')],
      { encoding: 'utf8' },
    );
    expect(printed).toContain('sk-ssh-ed25519-cert-v01@openssh.com');
    expect(printed).toMatch(/Critical Options: *\n\s+verify-required\n/);

    expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
    expect((await ssh(SIGNATURE_FLAGS.touched)).status).toBe(255);
    // The next certificate needs no new proof.
    rmSync(home.state(world.app, 'ssh/certificate.pub'));
    expect(await ssh()).toMatchObject({ status: 0, stdout: 'in\n' });
  });
});
