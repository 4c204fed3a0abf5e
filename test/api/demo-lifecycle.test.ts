import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Client } from '../support/client.js';
import { prepareDataDir } from '../support/cluster-template.js';
import { processesOf, startDemoProcess, type DemoProcess } from '../support/demo-process.js';
import { start } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/**
 * Returns true if a process exists and is not a zombie (ended, but not collected by its parent).
 */
function isRunning(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return status.slice(status.lastIndexOf(')') + 2, status.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    return false;
  }
}

/** Returns the process id of the sshd of a demo. */
function sshdOf({ dataDir }: DemoProcess): number {
  return Number(readFileSync(join(dataDir, 'sshd/sshd.pid'), 'utf8'));
}

async function applicationOf({ baseUrl }: DemoProcess): Promise<string> {
  const { text } = await new Client(baseUrl).get('/demo/engineer');
  return /href="(http:\/\/127\.0\.0\.1:\d+)"/.exec(text)?.[1] ?? '';
}

const answers = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );

requires('sshd', 'ssh', 'ssh-keygen').describe('two demos on one machine', () => {
  const folders: string[] = [];
  let first: DemoProcess;
  let second: DemoProcess;

  beforeAll(async () => {
    for (let count = 0; count < 2; count += 1) folders.push(await makeTemporaryDirectory());
    first = await startForPrograms(folders[0] ?? '');
    second = await startDemoProcess(folders[1] ?? '');
  });
  afterAll(async () => {
    await Promise.all([first.demo.stop(), second.demo.stop()]);
    for (const folder of folders) await removeDirectory(folder);
  });

  /**
   * Starts the demo with `--json`, and waits until its tour works, which is after it has printed
   * its document.
   */
  async function startForPrograms(cwd: string): Promise<DemoProcess> {
    await prepareDataDir(join(cwd, 'data-demo'));
    const port = await freePort();
    const demo = start('demo/main.js', ['--json', '--port', String(port)], { cwd });
    await demo.printed(/^\}$/m);
    const baseUrl = `http://localhost:${port}`;
    const tour = new Client(baseUrl);
    const isReady = async () => (await tour.get('/demo/engineer')).text.includes('data-command');
    await vi.waitUntil(isReady, { timeout: 90_000, interval: 20 });
    return { demo, baseUrl, dataDir: join(cwd, 'data-demo') };
  }

  it('have an application and an sshd each', async () => {
    expect(await applicationOf(first)).not.toBe(await applicationOf(second));
    expect(sshdOf(first)).not.toBe(sshdOf(second));
    for (const one of [first, second]) {
      const { json } = await new Client(one.baseUrl).get('/demo/live');
      expect(json.workday.access).toMatchObject({
        session: { isOpen: true },
        certificate: { isOpen: true },
        application: { isOpen: true },
      });
    }
  });

  it('SIGTERM ends everything that one of them started, and nothing of the other', async () => {
    const [sshd, application] = [sshdOf(first), await applicationOf(first)];
    const started = processesOf(first.demo.pid);
    expect(started).toContain(sshd);
    expect(await first.demo.stop()).toMatchObject({ status: 0, stderr: '' });
    await expect.poll(() => started.filter(isRunning)).toEqual([]);
    expect(await answers(application)).toBe(false);
    expect(isRunning(sshdOf(second))).toBe(true);
    expect(await answers(await applicationOf(second))).toBe(true);
  });

  it('prints one document and nothing else with --json, also while it serves the tour', async () => {
    const { stdout, stderr, status } = await first.demo.ended;
    expect(JSON.parse(stdout)).toMatchObject({ ok: true });
    expect([stderr, status]).toEqual(['', 0]);
  });

  it('the next start ends an sshd whose watcher was killed with the demo, and prepares the same people', async () => {
    const orphan = sshdOf(second);
    for (const pid of processesOf(second.demo.pid).toReversed()) {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (command.includes('svc-demo-sshd') || pid === second.demo.pid) {
        process.kill(pid, 'SIGKILL');
      }
    }
    await second.demo.ended;
    expect(isRunning(orphan)).toBe(true);
    second = await startDemoProcess(folders[1] ?? '');
    expect(isRunning(orphan)).toBe(false);
    expect(sshdOf(second)).not.toBe(orphan);
    const { text } = await new Client(second.baseUrl).get('/demo/engineer');
    expect(text).toContain('data-command');
  });

  it('kill -9 ends the sshd of the demo, too', async () => {
    const sshd = sshdOf(second);
    process.kill(second.demo.pid, 'SIGKILL');
    await expect.poll(() => isRunning(sshd)).toBe(false);
  });

  it('ends the demo when its terminal closes, with status 0', async () => {
    const third = await startDemoProcess(folders[0] ?? '');
    process.kill(third.demo.pid, 'SIGHUP');
    expect((await third.demo.ended).status).toBe(0);
  });
});
