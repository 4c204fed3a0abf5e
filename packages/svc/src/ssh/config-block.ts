import { isHostPattern } from '@svc/openssh';
import type { MarkedBlock } from '../changes/marked-block.js';
import { CliFailure, STATUS } from '../program/failure.js';

/**
 * The hosts of one server in the configuration of SSH, and the files that `ssh` uses for a login to
 * them.
 */
export interface SshHosts {
  readonly server: string;
  /**
   * Patterns of host names, such as `*.example.com`. An entry with commas is a separate list: a
   * pattern with `!` excludes hosts from that list alone.
   */
  readonly hosts: readonly string[];
  readonly identityFile: string;
  readonly certificateFile: string;
  /**
   * The folder of the certificates for single hosts that the certificate for all hosts does not
   * cover.
   */
  readonly hostCertificates: string;
}

/** The name of the command's block in `~/.ssh/config`. */
export const SSH_BLOCK = 'ssh';

/**
 * A pattern that excludes host names with a single quotation mark. The shell gets the host name
 * between such marks, so only this character could end the argument. Older versions of `ssh` accept
 * the character in a host name (CVE-2023-51385).
 */
const HOSTILE = "!*'*";

/**
 * Patterns that exclude host names which `cmd.exe` would read as more than one word. On Windows,
 * `ssh` runs the command of a `Match exec` by `cmd.exe`, and no quotation marks protect the host
 * name in the command.
 */
const HOSTILE_ON_WINDOWS = Array.from("&|<>^()%;=' ")
  .map((sign) => `!*${sign}*`)
  .join();

/** Matches a path that `cmd.exe` runs as it is, without quotation marks. */
const PLAIN_ON_WINDOWS = /^[A-Za-z]:(?:\\[\w.~@+-]+)+$/;

const UNQUOTABLE = /["'\\$\p{Cc}]/u;

/**
 * Returns the block for `~/.ssh/config` that makes `ssh` fetch a certificate before it logs in to
 * one of the hosts.
 *
 * It is at the end of the file, so that a `HostName` of the user's own entries applies before the
 * block is read. Each list of patterns has two sections. One is for a host name as the user typed
 * it, and the other for the name from a `HostName` line. A section excludes the hosts of earlier
 * lists, so that each host is checked once.
 *
 * On Windows the command of a section has no quotation marks. Older versions of `ssh` cannot read
 * them there, and `cmd.exe` does not know single quotation marks.
 *
 * @throws CliFailure for a path that `ssh` or `cmd.exe` would read in another way
 */
export function sshBlock(
  program: string,
  servers: readonly SshHosts[],
  platform: NodeJS.Platform = process.platform,
): MarkedBlock {
  const isWindows = platform === 'win32';
  const fileOf = (path: string) => sshPath(path, platform);
  const lines = servers.flatMap(
    ({ server, hosts, identityFile, certificateFile, hostCertificates }) => {
      const check = (token: string) =>
        isWindows
          ? `exec "${plainOnWindows(program)} ssh check --server ${expandable(server)} ${token}"`
          : `exec "'${expandable(program)}' ssh check --server '${expandable(server)}' '${token}'"`;
      // The certificate for the single host is listed first, because its sshd would refuse the
      // certificate for all hosts.
      const files = (token: string) => [
        `  CertificateFile "${fileOf(hostCertificates)}/${token}.pub"`,
        `  CertificateFile "${fileOf(certificateFile)}"`,
        `  IdentityFile "${fileOf(identityFile)}"`,
      ];
      const lists = listsOf(hosts, isWindows ? HOSTILE_ON_WINDOWS : HOSTILE);
      return lists.flatMap((list, n) => [
        `Match originalhost ${list} ${without('originalhost', lists.slice(0, n))}${check('%n')}`,
        ...files('%n'),
        `Match host ${list} ${without('host', lists.slice(0, n))}${without('originalhost', lists)}${check('%h')}`,
        ...files('%h'),
      ]);
    },
  );
  return { name: SSH_BLOCK, lines, position: 'bottom' };
}

/**
 * Returns the lists of patterns in quotation marks: one list of all entries without a comma, and
 * each other entry as a list.
 */
function listsOf(entries: readonly string[], hostile: string): string[] {
  const alone = entries.filter((entry) => !entry.includes(','));
  const joined = entries.filter((entry) => entry.includes(','));
  const lists = [...(alone.length > 0 ? [alone.join(',')] : []), ...joined];
  return lists.map((list) => `"${list},${hostile}"`);
}

/** Returns the criteria of a `Match` line that exclude the hosts of some lists. */
function without(criterion: 'host' | 'originalhost', lists: readonly string[]): string {
  return lists.map((list) => `!${criterion} ${list} `).join('');
}

/**
 * Returns patterns as entries of {@link SshHosts}. If a pattern excludes hosts, all patterns become
 * one entry with commas. If every pattern excludes hosts, there is no entry.
 */
export function patternEntries(patterns: readonly string[]): string[] {
  if (!patterns.some((pattern) => pattern.startsWith('!'))) return [...patterns];
  return patterns.every((pattern) => pattern.startsWith('!')) ? [] : [patterns.join(',')];
}

/**
 * Parses the values of `--host`. Each is a pattern, or several with commas between them.
 *
 * @throws CliFailure if a text is no pattern of host names
 */
export function hostPatterns(texts: readonly string[]): string[] {
  const patterns = texts.flatMap((text) => text.split(',')).map((text) => text.trim());
  const wrong = patterns.find((pattern) => !isHostPattern(pattern));
  if (wrong !== undefined) {
    throw new CliFailure(
      `"${wrong}" is not a pattern of host names.`,
      "Give one such as --host '*.example.com'.",
      STATUS.usage,
    );
  }
  return [...new Set(patterns)];
}

/**
 * Returns the path of a file in the form that `ssh` reads in its configuration and its options. On
 * Windows it has slashes, because a backslash has a meaning of its own there.
 *
 * @throws CliFailure for a path that `ssh` would read in another way
 */
export function sshPath(path: string, platform: NodeJS.Platform = process.platform): string {
  return expandable(platform === 'win32' ? path.replaceAll('\\', '/') : path);
}

/**
 * Returns a path or a URL in the form that `ssh_config` reads between quotation marks.
 * @throws CliFailure for a text that `ssh` would read in another way
 */
export function expandable(text: string): string {
  if (UNQUOTABLE.test(text)) {
    throw new CliFailure(
      `ssh cannot read the path ${JSON.stringify(text)} in its configuration.`,
      'Choose a path without quotes, backslashes and dollar signs: set SVC_HOME, or move svc.',
    );
  }
  return text.replaceAll('%', '%%');
}

/**
 * Returns the path of the command for `cmd.exe`, in the form that `ssh_config` reads.
 * @throws CliFailure for a path that would need quotation marks
 */
function plainOnWindows(path: string): string {
  if (PLAIN_ON_WINDOWS.test(path)) return path;
  throw new CliFailure(
    `ssh on Windows cannot run ${path}.`,
    'Move svc.exe to a path without spaces, such as C:\\svc\\svc.exe, and run it from there.',
  );
}
