import type { Command } from '../command/command.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { fetchHostScript, runHostScript, sudoLine } from './host-script.js';

const USAGE = [
  'svc host setup --account NAME --principal ADDRESS... [--dry-run]',
  'svc host setup --organization ID --group NAME,... --login NAME,... [--interval SECONDS] [--dry-run]',
  'svc host status',
  'svc host remove [--account NAME] [--login NAME,...] [--dry-run]',
].join('\n');

/** The options of the script for each action of `svc host`. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  setup: [],
  status: ['--status'],
  remove: ['--remove'],
};

/**
 * `svc host`: makes the sshd of this host accept the SSH certificates of the server. It runs a
 * script that the server provides.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'Runs /install-host.sh of the server as root. It has more options:',
    'sh -s -- --help < install-host.sh lists them, and every one may follow here.',
    '',
    '--account NAME          an account of this host; the principals that follow may log in to it',
    '--principal ADDRESS     the e-mail address of a user; may be repeated',
    '--principals-file FILE  principals, one a line',
    '--organization ID       the organization of the groups of hosts; an admin sees the whole line',
    '--group NAME,...        the groups of hosts to which this host belongs',
    '--login NAME,...        the accounts that the people of these groups, and no others, log in to',
    '--interval SECONDS      how often the list of revoked certificates is fetched (60)',
    '--dry-run               shows the changes and makes none',
  ],
  async run([action = '', ...given], context) {
    const first = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!first) throw usageFailure(`svc host needs setup, status or remove.`, USAGE);
    const options = [...first, ...given];
    const { terminal } = context;
    const script = await fetchHostScript(context.server(), terminal);
    if (process.getuid?.() !== 0) {
      const whatToDo = `Run: ${sudoLine(script.url, options)}`;
      throw new CliFailure('The files of sshd belong to root, so this needs root.', whatToDo);
    }
    terminal.warn(`${script.url} (SHA-256 ${script.checksum})`);
    const { status, lines } = await runHostScript(script, options, terminal.isJson);
    const { url, checksum } = script;
    terminal.result({ url, sha256: checksum, exit_status: status, output: lines }, []);
    return status;
  },
};
