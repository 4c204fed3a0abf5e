import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { startCollected, type CollectedProcess } from '../collected-process.js';
import { DEBIAN_ROOT } from '../programs.js';
import { removeDirectory } from '../temporary-directory.js';

/**
 * The commands that mount `/proc` and `/dev` of the host in the machine's folder, and enter it by
 * chroot.
 */
const ENTER = `
mount --bind /proc "$MACHINE/proc"
mount --rbind /dev "$MACHINE/dev"
exec chroot "$MACHINE" /bin/bash -euo pipefail -c "$COMMANDS"
`;

/** A minimal Debian without Node and systemd, in a folder. It uses the network of the host. */
export interface DebianMachine {
  /** The path of the machine's root folder on the host. */
  readonly root: string;
  /**
   * Starts commands of bash in the machine as root. They are stopped when the test disposes
   * `within`; by default that is the stack of the whole machine.
   */
  start(commands: string, within?: AsyncDisposableStack): CollectedProcess;
  /**
   * Runs commands of bash in the machine as root, and waits for their end.
   * @returns the output of both streams
   * @throws Error if a command fails
   */
  run(commands: string): Promise<string>;
}

/**
 * Makes a machine by copying a folder that `.ci/run` made. The copy is deleted when the test
 * disposes `parts`.
 */
export function startDebianMachine(parts: AsyncDisposableStack, from = DEBIAN_ROOT): DebianMachine {
  // The folder is on the disk and not in memory. A package with its Node needs 300 MB twice: as a
  // file, and installed.
  const folder = mkdtempSync('/var/tmp/svc-debian-');
  parts.defer(() => removeDirectory(folder));
  const root = join(folder, 'root');
  execFileSync('cp', ['-a', '--reflink=auto', from, root]);
  const start = (commands: string, within = parts) =>
    startCollected(
      within,
      ['unshare', '--mount', '--propagation', 'private', 'bash', '-euc', ENTER],
      {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: '/root',
        LANG: 'C.UTF-8',
        DEBIAN_FRONTEND: 'noninteractive',
        MACHINE: root,
        COMMANDS: commands,
      },
    );
  return {
    root,
    start,
    run: async (commands) => {
      const { ended, output } = start(commands);
      const status = await ended;
      if (status !== 0) throw new Error(`status ${status} of\n${commands}\n${output()}`);
      return output();
    },
  };
}
