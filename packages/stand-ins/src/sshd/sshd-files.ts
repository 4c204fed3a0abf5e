import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The settings of an sshd that listens on loopback. */
export interface SshdSettings {
  /**
   * The folder with the files of sshd: `host`, `authorities`, `principals`, `revoked`,
   * `sshd_config`.
   */
  readonly folder: string;
  readonly port: number;
  /** The command that every login runs, in place of a shell. */
  readonly command: string;
}

/** Writes `sshd_config` into the folder of the settings, and returns its path. */
export async function writeConfiguration(settings: SshdSettings): Promise<string> {
  const path = join(settings.folder, 'sshd_config');
  await writeFile(path, configuration(settings));
  return path;
}

/** Replaces a file in one step, because sshd may read it at any time. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

/**
 * Returns the path of the file with the process id of sshd. By this file, a later start finds an
 * sshd that an earlier run left behind.
 */
export function pidFileOf(folder: string): string {
  return join(folder, 'sshd.pid');
}

function configuration({ folder, port, command }: SshdSettings): string {
  const file = (name: string) => `"${join(folder, name)}"`;
  return [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${file('host')}`,
    `PidFile "${pidFileOf(folder)}"`,
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'AuthorizedKeysFile none',
    'PermitRootLogin prohibit-password',
    'StrictModes no', // otherwise sshd refuses files below a folder that others can write
    `TrustedUserCAKeys ${file('authorities')}`,
    `RevokedKeys ${file('revoked')}`,
    `AuthorizedPrincipalsFile ${file('principals').replaceAll('%', '%%')}`,
    'DisableForwarding yes',
    'PermitUserRC no',
    'PrintMotd no',
    'ExposeAuthInfo yes',
    `ForceCommand ${command}`,
    '',
  ].join('\n');
}
