import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { systemClock } from '../clock.js';
import { pidFileOf, writeConfiguration, type SshdSettings } from './sshd-files.js';

/** A running sshd. `stop` resolves when it has ended. */
export interface SshdProcess {
  stop(): Promise<void>;
}

/**
 * A shell script that runs sshd until sshd ends or the standard input of the script ends. Standard
 * input ends when the demo ends, even if the demo is killed. The shell has a process group of its
 * own, so that Ctrl-C in the terminal reaches only the demo.
 */
const UNTIL_INPUT_ENDS = [
  'exec 3<&0',
  '"$@" 3<&- & child=$!',
  '{ read -r _ <&3; kill "$child"; } 2>/dev/null & reader=$!',
  'wait "$child"; kill "$reader" 2>/dev/null',
].join('\n');

/**
 * Starts sshd, and resolves when it listens.
 *
 * @throws Error with the log of sshd if it does not start
 */
export async function startSshd(program: string, settings: SshdSettings): Promise<SshdProcess> {
  await endOrphan(settings.folder);
  // An sshd that root starts requires this folder, and confines its unprivileged process to the
  // folder (chroot).
  if (userInfo().uid === 0) mkdirSync('/run/sshd', { recursive: true });
  const config = await writeConfiguration(settings);
  const args = ['-c', UNTIL_INPUT_ENDS, 'svc-demo-sshd', program, '-D', '-e', '-f', config];
  const child = spawn('/bin/sh', args, { detached: true, stdio: ['pipe', 'ignore', 'pipe'] });
  const ended = once(child, 'close');
  child.stdin.on('error', () => {}); // the script may have ended already
  await listening(child);
  return {
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

async function listening(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error('sshd was started without a log');
  const lines: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    lines.push(line);
    if (line.startsWith('Server listening')) {
      child.stderr.resume(); // discards later lines
      return;
    }
  }
  throw new Error(`sshd did not start: ${lines.join('; ')}`);
}

/**
 * Ends the sshd of an earlier run whose shell script was killed together with the demo. If another
 * process has the process id now, that process is not ended.
 */
export async function endOrphan(folder: string): Promise<void> {
  const file = pidFileOf(folder);
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  if (pid <= 1 || !isSshdOf(pid, folder)) return;
  process.kill(pid, 'SIGTERM');
  for (let tries = 0; tries < 100; tries += 1) {
    if (!isSshdOf(pid, folder)) return;
    await systemClock.sleep(20);
  }
}

function isSshdOf(pid: number, folder: string): boolean {
  const { stdout } = spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  const line = existsSync(`/proc/${pid}/cmdline`)
    ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    : (stdout ?? '');
  return line.includes('sshd') && line.includes(folder);
}
