import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires } from '../support/programs.js';
import { runProgram, SvcHome } from '../support/svc-command.js';

const APP = { baseUrl: 'https://login.example.com' };
const SETUP = ['setup', 'ssh', '--host', '*.example.com'];

describe('svc setup', () => {
  let home: SvcHome;
  const at = (...names: string[]) => join(home.path, ...names);
  const config = () => at('.ssh/config');
  const text = (path: string) => readFileSync(path, 'latin1');
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  const writeConfig = (content: string, mode = 0o600) => {
    mkdirSync(at('.ssh'), { recursive: true, mode: 0o700 });
    writeFileSync(config(), content, 'latin1');
    chmodSync(config(), mode);
  };
  beforeEach(async () => {
    home = await SvcHome.create();
    home.useServer(APP);
  });
  afterEach(() => home.remove());

  it('makes ~/.ssh with mode 0700 and its config with 0600, and --remove takes both away', async () => {
    const before = text(home.config);
    const end = await home.run([...SETUP, '--yes']);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain(`+++ ${config()}`);
    expect([modeOf(at('.ssh')), modeOf(config())]).toEqual(['700', '600']);
    expect(text(config())).toContain(`'${home.program}' ssh check`);

    expect(await home.run(['setup', 'ssh', '--remove', '--yes'])).toMatchObject({ status: 0 });
    expect(existsSync(at('.ssh'))).toBe(false);
    expect(JSON.parse(text(home.config))).toEqual(JSON.parse(before));
  });

  it('changes nothing the second time', async () => {
    await home.run([...SETUP, '--yes']);
    const [first, inode] = [text(config()), statSync(config()).ino];
    for (const args of [SETUP, ['setup', 'ssh'], ['setup']]) {
      const end = await home.run(args);
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(end.stdout).toMatch(/^Nothing to change\.$/m);
    }
    expect([text(config()), statSync(config()).ino]).toEqual([first, inode]);
  });

  it.each([
    ['bytes that are no UTF-8', 'Host a\n  # caf\xe9 \xff\n'],
    ['no last line break', 'Host a'],
    ['CRLF', 'Host a\r\n  User b\r\n'],
    ['nothing', ''],
  ])('keeps a file with %s byte for byte, with its mode', async (_, content) => {
    writeConfig(content, 0o640);
    await home.run([...SETUP, '--yes']);
    expect(text(config()).startsWith(content)).toBe(true);
    expect(modeOf(config())).toBe('640');
    await home.run(['setup', '--remove', '--yes']);
    expect(text(config())).toBe(content);
    expect(modeOf(config())).toBe('640');
  });

  it('shows the change and makes none with --dry-run', async () => {
    writeConfig('Host secret\n');
    const noted = text(home.config);
    const end = await home.run([...SETUP, '--dry-run']);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain('+Match originalhost');
    expect(end.stdout).not.toContain('secret');
    expect([text(config()), text(home.config)]).toEqual(['Host secret\n', noted]);
  });

  it('changes nothing without an answer, and says what to do with status 2', async () => {
    const end = await home.run(SETUP);
    expect(end.status).toBe(2);
    expect(end.stderr).toContain('--yes');
    expect(existsSync(config())).toBe(false);
    expect((await home.run(['setup', 'ssh'])).stderr).toContain("--host '*.example.com'");
  });

  it.each([
    ['# >>> svc ssh >>>\nHost a\n', 'line 1'],
    ['Host a\n# <<< svc ssh <<<\n', 'line 2'],
    ['# >>> svc ssh >>>\n# <<< svc ssh <<<\n'.repeat(2), 'line 3'],
  ])('refuses broken markers and leaves the file: %j', async (content, line) => {
    writeConfig(content);
    for (const args of [SETUP, ['setup', 'ssh', '--remove']]) {
      const end = await home.run([...args, '--yes']);
      expect(end.status).toBe(1);
      expect(end.stderr).toContain(`${config()}, ${line}`);
      expect(text(config())).toBe(content);
    }
  });

  it('writes behind a symbolic link, also one whose file does not exist yet', async () => {
    mkdirSync(at('.ssh'), { mode: 0o700 });
    mkdirSync(at('dotfiles'));
    symlinkSync('../dotfiles/ssh', config());
    for (const content of [undefined, 'Host a\n']) {
      if (content !== undefined) writeFileSync(at('dotfiles/ssh'), content);
      await home.run([...SETUP, '--yes']);
      expect(lstatSync(config()).isSymbolicLink()).toBe(true);
      expect(text(at('dotfiles/ssh'))).toContain('# >>> svc ssh');
      await home.run(['setup', '--remove', '--yes']);
      expect(lstatSync(config()).isSymbolicLink()).toBe(true);
      expect(existsSync(at('dotfiles/ssh')) && text(at('dotfiles/ssh'))).toBe(content ?? false);
      rmSync(at('dotfiles/ssh'), { force: true });
    }
  });

  it('leaves a file that cannot be written, and names it', async () => {
    mkdirSync(config(), { recursive: true });
    const end = await home.run([...SETUP, '--yes']);
    expect(end.status).toBe(1);
    expect(end.stderr).toContain(config());
  });

  it('refuses an unknown part, option or pattern with status 2', async () => {
    for (const args of [['ftp'], ['ssh', '--loud'], ['ssh', '--host', "a' b"], ['--host']]) {
      expect((await home.run(['setup', ...args])).status).toBe(2);
    }
  });

  it('prints one document with --json', async () => {
    const end = await home.run([...SETUP, '--yes', '--json']);
    const document = JSON.parse(end.stdout);
    expect(document).toMatchObject({ applied: true, parts: [{ name: 'ssh' }] });
    expect(document.parts[0].changes.flat()).toContain('+# >>> svc ssh (new folder) >>>');
  });
});

describe('svc setup aws', () => {
  it('reads ~ in AWS_CONFIG_FILE as the home folder, as the AWS tools do', async () => {
    const home = await SvcHome.create();
    home.useServer(APP);
    const args = ['setup', 'aws', '--role', 'arn:aws:iam::123456789012:role/engineer', '--yes'];
    const env = { AWS_CONFIG_FILE: '~/aws.ini' };
    expect(await home.run(args, { env, cwd: home.path })).toMatchObject({ status: 0 });
    expect(readFileSync(join(home.path, 'aws.ini'), 'utf8')).toContain('[profile engineer]');
    expect(existsSync(join(home.path, '~'))).toBe(false);
    await home.remove();
  });
});

describe('a file that a variable of the tool names', () => {
  let home: SvcHome;
  beforeEach(async () => {
    home = await SvcHome.create();
    home.useServer(APP);
  });
  afterEach(() => home.remove());

  const TOOLS = [
    [
      'aws',
      ['--role', 'arn:aws:iam::123456789012:role/a'],
      'AWS_CONFIG_FILE',
      'own.ini',
      '.aws/config',
    ],
    ['git', ['--sign'], 'GIT_CONFIG_GLOBAL', 'own.git', '.gitconfig'],
    [
      'docker',
      ['--registry', 'public.ecr.aws', '--role', 'arn:aws:iam::123456789012:role/a'],
      'DOCKER_CONFIG',
      'own',
      '.docker',
    ],
  ] as const;

  it.each(TOOLS)(
    '%s: --remove undoes the setup of a file that the variable names no more, and says so',
    async (tool, options, variable, own, usual) => {
      const config = home.config;
      const noted = (): unknown => JSON.parse(readFileSync(config, 'utf8'));
      const before = noted();
      const env = { [variable]: join(home.path, own) };
      const setUp = ['setup', tool, ...options, '--yes'];
      expect(await home.run(setUp, { env })).toMatchObject({ status: 0 });
      expect(await home.run(setUp)).toMatchObject({ status: 0 });
      for (const name of [own, usual]) expect(existsSync(join(home.path, name))).toBe(true);
      const end = await home.run(['setup', tool, '--remove', '--yes']);
      expect(end).toMatchObject({ status: 0 });
      expect(end.stdout).toMatch(new RegExp(`^${tool}: .*/${own}\\b.*${variable}`, 'm'));
      for (const name of [own, usual]) expect(existsSync(join(home.path, name))).toBe(false);
      expect(noted()).toEqual(before);
    },
  );

  /**
   * Returns the path of a tool's file at a name in the home folder. For Docker the name is a
   * folder.
   */
  const fileAt = (tool: string, name: string) =>
    join(home.path, name, ...(tool === 'docker' ? ['config.json'] : []));

  it.each(TOOLS)(
    '%s: --remove leaves a usual file that it cannot read, and says so',
    async (tool, options, variable, own, usual) => {
      const noted = (): unknown => JSON.parse(readFileSync(home.config, 'utf8'));
      const before = noted();
      const env = { [variable]: join(home.path, own) };
      expect(await home.run(['setup', tool, ...options, '--yes'], { env })).toMatchObject({
        status: 0,
      });
      mkdirSync(fileAt(tool, usual), { recursive: true });
      const end = await home.run(['setup', tool, '--remove', '--yes'], { env });
      expect(end).toMatchObject({ status: 0 });
      expect(end.stdout).toContain(`${tool}: ${fileAt(tool, usual)} could not be looked at: `);
      expect(existsSync(join(home.path, own))).toBe(false);
      expect(noted()).toEqual(before);
    },
  );

  it.each(TOOLS)(
    '%s: --remove keeps the record of a file that it cannot read, for the next one',
    async (tool, options, variable, own, usual) => {
      const setups = (): unknown => JSON.parse(readFileSync(home.config, 'utf8')).setup;
      const before = setups();
      const env = { [variable]: join(home.path, own) };
      await home.run(['setup', tool, ...options, '--yes'], { env });
      await home.run(['setup', tool, ...options, '--yes']);
      const written = readFileSync(fileAt(tool, own));
      rmSync(fileAt(tool, own));
      mkdirSync(fileAt(tool, own));
      const end = await home.run(['setup', tool, '--remove', '--yes']);
      expect(end).toMatchObject({ status: 0 });
      expect(end.stdout).toContain(`${tool}: ${fileAt(tool, own)} could not be looked at: `);
      expect(existsSync(join(home.path, usual))).toBe(false);
      expect(setups()).toMatchObject({ [`${tool}-files`]: [fileAt(tool, own)] });

      rmSync(fileAt(tool, own), { recursive: true });
      writeFileSync(fileAt(tool, own), written);
      expect(await home.run(['setup', tool, '--remove', '--yes'])).toMatchObject({ status: 0 });
      const left = existsSync(fileAt(tool, own)) ? readFileSync(fileAt(tool, own), 'utf8') : '';
      expect(left).not.toMatch(/svc/);
      expect(setups()).toEqual(before);
    },
  );

  it.each(['own', '.docker'])(
    'docker: --remove leaves a file of the user, if it made another: %s',
    async (ofUser) => {
      const [, options] = TOOLS[2];
      const env = { DOCKER_CONFIG: join(home.path, 'own') };
      mkdirSync(join(home.path, ofUser));
      writeFileSync(fileAt('docker', ofUser), '{}\n');
      const setUp = ['setup', 'docker', ...options, '--yes'];
      expect(await home.run(setUp, { env })).toMatchObject({ status: 0 });
      expect(await home.run(setUp)).toMatchObject({ status: 0 });
      await home.run(['setup', 'docker', '--remove', '--yes']);
      expect(readFileSync(fileAt('docker', ofUser), 'utf8')).toBe('{}\n');
      const made = ofUser === 'own' ? '.docker' : 'own';
      expect(existsSync(join(home.path, made))).toBe(false);
    },
  );

  it('is changed once, also if the usual one is a link to it', async () => {
    const own = join(home.path, 'dotfiles');
    writeFileSync(own, '[default]\n');
    mkdirSync(join(home.path, '.aws'));
    symlinkSync(own, join(home.path, '.aws/config'));
    const env = { AWS_CONFIG_FILE: own };
    const setUp = ['setup', 'aws', ...TOOLS[0][1], '--yes'];
    expect(await home.run(setUp, { env })).toMatchObject({ status: 0 });
    const end = await home.run(['setup', 'aws', '--remove', '--yes'], { env });
    expect(end.stdout.match(/>>> svc aws/g)).toHaveLength(1);
    expect(readFileSync(own, 'utf8')).toBe('[default]\n');
  });

  it.each(TOOLS)(
    '%s: --remove undoes the setup of the usual file while the variable names another',
    async (tool, options, variable, own, usual) => {
      await home.run(['setup', tool, ...options, '--yes']);
      expect(existsSync(join(home.path, usual))).toBe(true);
      const env = { [variable]: join(home.path, own) };
      const end = await home.run(['setup', tool, '--remove', '--yes'], { env });
      expect(end.stdout).toMatch(new RegExp(`^${tool}: .*/${usual}\\b.*${variable}`, 'm'));
      expect(existsSync(join(home.path, usual))).toBe(false);
    },
  );
});

requires('git').describe('svc setup git --sign', () => {
  let home: SvcHome;
  beforeEach(async () => {
    home = await SvcHome.create();
    home.useServer(APP);
  });
  afterEach(() => home.remove());

  it('keeps what git config writes into its sections, also with --remove', async () => {
    const file = join(home.path, '.gitconfig');
    const text = () => readFileSync(file, 'utf8');
    const setUp = ['setup', 'git', '--sign', '--yes'];
    expect(await home.run(setUp)).toMatchObject({ status: 0 });
    for (const [name, value] of [
      ['user.email', 'ada@example.com'],
      ['gpg.ssh.allowedSignersFile', '~/.config/git/allowed_signers'],
    ] as const) {
      const options = { env: home.env };
      await runProgram('git', ['config', '--global', name, value], options);
    }
    const own = text();
    expect(own).toMatch(/email = ada@example\.com\n[^]*# <<< svc git <<</);
    expect((await home.run(setUp)).stdout).toMatch(/^Nothing to change\.$/m);
    expect(text()).toBe(own);
    expect(await home.run(['setup', '--remove', '--yes'])).toMatchObject({ status: 0 });
    expect(text()).toBe(
      '[user]\n\temail = ada@example.com\n[gpg "ssh"]\n\tallowedSignersFile = ~/.config/git/allowed_signers\n',
    );
  });
});

requires('script').describe('svc setup in a terminal', () => {
  let home: SvcHome;
  beforeEach(async () => {
    home = await SvcHome.create();
    home.useServer(APP);
  });
  afterEach(() => home.remove());
  const hasBlock = () => existsSync(join(home.path, '.ssh/config'));

  it.each([
    ['Enter', '\n', 0],
    ['y', 'y\n', 0],
    ['n', 'n\n', 1],
    ['another word', 'no idea\n', 1],
    ['the end of the input', '\u0004', 1],
  ])('shows the changes, and after %s makes them or none', async (_, input, status) => {
    const end = await home.runInTerminal(SETUP, { input });
    expect(end.stdout).toContain('Make these changes? [Y/n]');
    expect([end.status, hasBlock()]).toEqual([status, status === 0]);
  });

  it('asks for the hosts when they are not known', async () => {
    const end = await home.runInTerminal(['setup', '--yes'], { input: 'web?.example.com\n' });
    expect(end.status).toBe(0);
    expect(readFileSync(join(home.path, '.ssh/config'), 'utf8')).toContain('"web?.example.com,');
  });
});
