import { execFileSync } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { complaintsOf, productionOf, URL_TO_OPEN } from '../support/demo-process.js';
import { run } from '../support/entry-point.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const STEPS = [
  'sign in upstream',
  'enroll the software key',
  'log in with the key',
  'list the keys',
  'get an SSH certificate',
  'check it against the CA key',
  'get AWS credentials',
  'sign in to an application',
  'approve the command line',
  'provision a colleague by SCIM',
  'delete the colleague by SCIM',
];
/** A certificate in PEM that a root has signed, and that is not a root. */
const LEAF = issueAttestationLeaf(
  Buffer.alloc(16, 1),
  new Date(),
  issueAuthority('Root', new Date()),
).pem;

let cwd: string;

/**
 * All demos of this file run one after the other in one directory, so that each finds the data of
 * the previous one.
 */
beforeAll(async () => {
  cwd = await makeTemporaryDirectory();
});
afterAll(() => removeDirectory(cwd));

/** Replaces the parts of a transcript that differ between runs by `*`, and returns its lines. */
function withoutChance(transcript: string): string[] {
  return transcript
    .replaceAll(/demo-[0-9a-f]{8}/g, 'demo-*')
    .replaceAll(/SHA256:[\w+/]+/g, 'SHA256:*')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '*')
    .replaceAll(/\b[A-Z]{4}-[A-Z]{4}\b/g, '*')
    .replaceAll(/\b\d{10,}\b|\d+(?:\.\d{1,3})? s\b|\b28\d{3}\b/g, '*')
    .replace(/, which sshd takes/, '')
    .replace(/, (?:refused by sshd after \*|no sshd here to ask)/, '')
    .split('\n')
    .filter((line) => line !== '');
}

describe('the scenario of the demo', () => {
  /** What the first run without `--json` has printed. */
  let printed = '';

  /** The JSON document that the first run in this directory has printed. */
  let document: {
    ok: boolean;
    base_url: string;
    steps: { name: string; ok: boolean; result: Record<string, unknown>; ms: number }[];
    ssh: Record<string, unknown> & { certificate: string; valid_before: string };
  };

  it('prints one JSON document of successful steps and nothing else, and exits with 0', async () => {
    // this file would break the start if the demo read it
    await writeFile(join(cwd, '.env'), 'SVC_JWT_SECRET=short\nSVC_IDPS=corp\n');
    const { status, stdout, stderr } = await run(
      'demo/main.js',
      ['--json', '--exit', '--port', '0'],
      { cwd },
    );
    expect(complaintsOf(stderr)).toEqual([]);
    document = JSON.parse(stdout);
    expect(document).toMatchObject({ ok: true, steps: STEPS.map((name) => ({ name, ok: true })) });
    expect(document.steps.at(-1)?.result).toMatchObject({
      seconds: { application_ended: expect.any(Number) },
    });
    expect(document.base_url).toMatch(/^http:\/\/localhost:\d+$/);
    expect(document.ssh.certificate).toMatch(/^ssh-ed25519-cert-v01@openssh\.com [\w+/]+=*$/);
    expect(status).toBe(0);
  });

  requires('ssh-keygen').describe('with OpenSSH', () => {
    it('gets a certificate in which ssh-keygen reads principals, validity and extensions', async () => {
      const file = join(cwd, 'id-cert.pub');
      await writeFile(file, document.ssh.certificate);
      const text = execFileSync('ssh-keygen', ['-L', '-f', file], {
        encoding: 'utf8',
        env: { ...process.env, TZ: 'UTC' },
      });
      const email = String(document.steps[0]?.result['email']);
      const expires = String(document.steps[2]?.result['session_expires_at']);
      expect(text).toContain('Type: ssh-ed25519-cert-v01@openssh.com user certificate');
      expect(text).toContain(`Key ID: "${email}@localhost"`);
      expect(text).toMatch(
        new RegExp(`Principals: \\n +${email}\\n +Critical Options: \\(none\\)`),
      );
      expect(text.match(/permit-\S+/g)).toHaveLength(5);
      expect(text).toContain(`to ${document.ssh.valid_before.slice(0, 19)}`);
      expect(Date.parse(document.ssh.valid_before)).toBeLessThan(Date.parse(expires) + 1000);
    });
  });

  it('succeeds again on the same data, with output for a reader', async () => {
    const { status, stdout, stderr } = await run('demo/main.js', ['--exit', '--port', '0'], {
      cwd,
    });
    expect(complaintsOf(stderr)).toEqual([]);
    const told = stdout.split('\n').filter((line) => line.startsWith('ok  '));
    expect(told.map((line) => / (?<n>\d+)\. (?<name>.*) — ./.exec(line)?.groups)).toEqual(
      STEPS.map((name, index) => ({ n: String(index + 1), name })),
    );
    printed = stdout;
    expect(stdout).toContain('11 of 11 steps succeeded.');
    expect(stdout).not.toMatch(URL_TO_OPEN);
    expect(status).toBe(0);
  });

  it('10.30 prints what the README shows', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const [, shown = ''] = /```\n(The svc demo:[^]*?)```/.exec(readme) ?? [];
    expect(withoutChance(printed)).toEqual(withoutChance(shown.split('\nNow ')[0] ?? ''));
  });

  it('never prints its secrets', async () => {
    for (const name of ['demo.json', 'ssh_ca_key']) {
      const { mode } = await stat(join(cwd, 'data-demo', name));
      expect(mode & 0o777, name).toBe(0o600);
    }
  });

  it('fails at the sign-in with other identity providers, prints the reason, and exits with 1', async () => {
    const idp = await startDemoIdentityProvider({
      clientId: 'svc',
      clientSecret: 'secret',
      redirectUri: 'http://localhost/oauth/callback',
    });
    try {
      const {
        SVC_BASE_URL: _,
        SVC_LISTEN_ADDR: __,
        SVC_JWT_SECRET: ___, // the stored secret remains, because it seals keys in the data
        ...environment
      } = (await productionOf(idp.issuer)).environment;
      const ended = await run('demo/main.js', ['--json', '--exit', '--port', '0'], {
        cwd,
        environment,
      });
      const { ok, steps, ssh } = JSON.parse(ended.stdout);
      expect({ ok, ssh }).toEqual({ ok: false, ssh: null });
      expect(steps[0].error).toMatch(/^SVC_IDPS names other identity providers/);
      expect(steps.map((step: { ok: boolean }) => step.ok)).toEqual(STEPS.map(() => false));
      expect(ended.status).toBe(1);
    } finally {
      await idp.close();
    }
  });
});

describe('the command line of the demo', () => {
  it('refuses an unknown option with status 2 and lists the known ones', async () => {
    const { status, stdout, stderr } = await run('demo/main.js', ['--production'], { cwd });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('--production');
    expect(stderr).toContain('Usage: npm run demo -- [options]');
  });

  it('prints its help', async () => {
    const { status, stdout } = await run('demo/main.js', ['--help'], { cwd });
    expect(status).toBe(0);
    for (const option of ['--json', '--exit', '--port N', '--attestation-root FILE.pem']) {
      expect(stdout).toContain(option);
    }
  });

  it('reports a taken port in one line', async () => {
    const other = createServer();
    const port = await listenOnLoopback(other);
    try {
      const ended = await run('demo/main.js', ['--exit', '--json', '--port', String(port)], {
        cwd,
      });
      expect(ended.stderr).toBe(
        `Port ${port} cannot be listened on (EADDRINUSE): choose another with --port\n`,
      );
      expect(ended.status).toBe(1);
    } finally {
      await stopServer(other);
    }
  });

  it('refuses a public base URL in one line, before it starts anything', async () => {
    const environment = { SVC_BASE_URL: 'https://svc.example.com' };
    const ended = await run('demo/main.js', ['--exit', '--port', '0'], { cwd, environment });
    expect(ended.stderr).toMatch(/^SVC_BASE_URL: must be a loopback address[^\n]*\n$/);
    expect(ended.status).toBe(1);
  });

  it('listens only on loopback, with any environment', async () => {
    const environment = { SVC_LISTEN_ADDR: '0.0.0.0:3000' };
    const ended = await run('demo/main.js', ['--exit', '--port', '0'], { cwd, environment });
    expect(ended.stderr).toMatch(/^SVC_LISTEN_ADDR: must be a loopback address/);
    expect(ended.status).toBe(1);
  });

  it.each([
    ['that is not there', undefined],
    ['that is not PEM', 'not a certificate'],
    ['that is no certificate authority', LEAF],
  ])('refuses an attestation root %s', async (_, content) => {
    const file = join(cwd, 'root.pem');
    if (content !== undefined) await writeFile(file, content);
    const args = ['--exit', '--port', '0', '--attestation-root', file];
    const ended = await run('demo/main.js', args, { cwd });
    expect(ended.stderr).toMatch(/^--attestation-root: \S+root\.pem holds no root certificate \(/);
    expect(ended.stderr.trim().split('\n')).toHaveLength(1);
    expect(ended.status).toBe(1);
  });
});
