import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The name by which the visitor's `ssh` command knows the demo's sshd. */
const HOST = 'demo';

/** The facts that the files for the visitor's commands contain. */
export interface VisitorFacts {
  readonly baseUrl: string;
  /** The path of the `svc` command, a file that Node runs. */
  readonly command: string;
  readonly metricsToken: string | undefined;
  /** The demo's sshd, if this machine has one. */
  readonly sshd:
    { readonly port: number; readonly user: string; readonly hostKey: string } | undefined;
}

/** The commands that the visitor pastes. */
export interface VisitorCommands {
  readonly logIn: string;
  readonly status: string;
  readonly ssh: string;
  readonly metrics: string;
}

/**
 * Writes the files for the visitor's commands into a folder of the demo. They are the `svc` command
 * with its own configuration, and files for `ssh` and `curl`. Nothing changes in the visitor's home
 * folder.
 */
export async function writeVisitorFiles(
  folder: string,
  facts: VisitorFacts,
): Promise<VisitorCommands> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const svc = join(folder, 'svc');
  const config = join(folder, 'ssh_config');
  const curl = join(folder, 'metrics.curl');
  await writeFile(svc, launcher(facts.command, join(folder, 'svc-home')), { mode: 0o755 });
  await chmod(svc, 0o755);
  await run(svc, ['use', facts.baseUrl, '--offline']);
  await writeFile(config, sshConfiguration(folder, svc, facts), { mode: 0o600 });
  if (facts.sshd) await writeFile(join(folder, 'known_hosts'), `${HOST} ${facts.sshd.hostKey}\n`);
  await writeFile(curl, curlConfiguration(facts), { mode: 0o600 });
  return {
    logIn: `${quoted(svc)} login`,
    status: `${quoted(svc)} status`,
    ssh: `ssh -F ${quoted(config)} ${HOST}`,
    metrics: `curl -K ${quoted(curl)}`,
  };
}

function launcher(command: string, home: string): string {
  return `#!/bin/sh
# The svc command of the demo. Its files are beside it: your own configuration stays as it is.
SVC_HOME=${quoted(home)} exec ${quoted(process.execPath)} ${quoted(command)} "$@"
`;
}

/**
 * Returns a configuration of `ssh`: the lines that `svc setup ssh` writes, and the host and port of
 * the demo's sshd. The text is empty if this machine has no sshd.
 */
function sshConfiguration(folder: string, svc: string, { baseUrl, sshd }: VisitorFacts): string {
  if (!sshd) return '';
  const { protocol, host } = new URL(baseUrl);
  const server = `${protocol === 'http:' ? 'http_' : ''}${host.replaceAll(':', '_')}`;
  const file = (name: string) => `"${join(folder, name).replaceAll('%', '%%')}"`;
  const check = `${quoted(svc)} ssh check --server ${baseUrl} ${HOST}`.replaceAll('%', '%%');
  return `# ssh asks svc for a certificate before each login.
Match originalhost ${HOST} exec "${check}"
  CertificateFile ${file(`svc-home/state/${server}/ssh/id-cert.pub`)}
  IdentityFile ${file(`svc-home/state/${server}/ssh/id`)}
Host ${HOST}
  HostName 127.0.0.1
  Port ${sshd.port}
  User ${sshd.user}
  HostKeyAlias ${HOST}
  UserKnownHostsFile ${file('known_hosts')}
  GlobalKnownHostsFile none
  IdentitiesOnly yes
  IdentityAgent none
  PasswordAuthentication no
  KbdInteractiveAuthentication no
`;
}

/**
 * Returns a configuration file of curl for the metrics. It contains the token, since the arguments
 * of a command are visible to every user of the machine.
 */
function curlConfiguration({ baseUrl, metricsToken }: VisitorFacts): string {
  return `url = "${baseUrl}/metrics"\nheader = "authorization: Bearer ${metricsToken ?? ''}"\nsilent\nshow-error\n`;
}

/** Quotes a path for the shell if it needs quotes. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
