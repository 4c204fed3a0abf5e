import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeVisitorFiles } from '../src/tour/visitor-files.js';

/** A command in place of `svc`: it writes its arguments to a file in its home folder. */
const COMMAND = `import { mkdirSync, writeFileSync } from 'node:fs';
mkdirSync(process.env.SVC_HOME, { recursive: true });
writeFileSync(process.env.SVC_HOME + '/arguments', process.argv.slice(2).join(' '));`;

const BASE_URL = 'http://localhost:3000';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc demo's "));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes the files for a machine with sshd, and returns the commands. */
function write() {
  const command = join(folder, 'a command.mjs');
  writeFileSync(command, COMMAND);
  const sshd = { port: 2222, user: 'ada', hostKey: 'ssh-ed25519 AAAA host' };
  const facts = { baseUrl: BASE_URL, command, metricsToken: 'the token', sshd };
  return writeVisitorFiles(join(folder, 'tour'), facts);
}

describe('the files for the commands of a visitor', () => {
  it('run the given command with files of its own, also in a folder whose name needs quotes', async () => {
    const { logIn } = await write();
    const said = readFileSync(join(folder, 'tour/svc-home/arguments'), 'utf8');
    expect(said).toBe(`use ${BASE_URL} --offline`);
    expect(logIn).toMatch(/^'.*\/tour\/svc' login$/);
  });

  it('keep the token of the metrics in a file of the owner, and out of the command', async () => {
    const { metrics } = await write();
    const file = join(folder, 'tour/metrics.curl');
    expect(metrics).not.toContain('the token');
    expect(readFileSync(file, 'utf8')).toContain('Bearer the token');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('let ssh ask for a certificate, and trust the key of this host alone', async () => {
    await write();
    const config = readFileSync(join(folder, 'tour/ssh_config'), 'utf8');
    expect(config).toContain(`ssh check --server ${BASE_URL} demo"`);
    expect(config).toContain('GlobalKnownHostsFile none');
    const known = readFileSync(join(folder, 'tour/known_hosts'), 'utf8');
    expect(known).toBe('demo ssh-ed25519 AAAA host\n');
  });
});
