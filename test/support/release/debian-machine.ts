import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { startCollected, type CollectedProcess } from '../collected-process.js';
import { DEBIAN_ROOT } from '../programs.js';
import { removeDirectory } from '../temporary-directory.js';

/** Enters the root of the machine, with the kernel's files of the host in it. */
const ENTER = `
mount --bind /proc "$MACHINE/proc"
mount --rbind /dev "$MACHINE/dev"
exec chroot "$MACHINE" /bin/bash -euo pipefail -c "$COMMANDS"
`;

/** A bare Debian without Node and without systemd, which shares the network of the host. */
export interface DebianMachine {
  /** The folder of its root. */
  readonly root: string;
  /** Starts commands of bash as root, which end with the parts of the test or with other parts. */
  start(commands: string, within?: AsyncDisposableStack): CollectedProcess;
  /**
   * Runs commands of bash as root.
   * @returns the output of both streams
   * @throws Error if a command fails
   */
  run(commands: string): Promise<string>;
}

/** Copies a root that `.ci/run` made. The machine is deleted with the parts of the test. */
export function startDebianMachine(parts: AsyncDisposableStack, from = DEBIAN_ROOT): DebianMachine {
  // On the disk, because a package with its Node takes 300 MB twice.
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
