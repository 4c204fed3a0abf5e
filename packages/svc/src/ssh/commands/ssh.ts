import type { CommandContext } from '../../command/command-context.js';
import type { Command } from '../../command/command.js';
import { now } from '../../program/clock.js';
import {
  certificateIn,
  hasAgents,
  hasFreshCertificate,
  hostName,
  SSH_FILES,
  takeRecheck,
  tellOfTouch,
} from '../certificate-cache.js';

const USAGE = [
  'svc ssh [OPTION]... [USER@]HOST [COMMAND]...',
  'svc ssh check HOST',
  'svc ssh recheck',
  'svc ssh cert [HOST] [--renew]',
  'svc ssh status',
  'svc ssh add [--time TIME] [--confirm]',
].join('\n');

/**
 * `svc ssh`: logs in to a host, and gets and shows the SSH certificate of this machine. `ssh`
 * itself runs `svc ssh check` before it logs in to a host.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'HOST    makes sure that a valid certificate is there, and runs ssh with it; all that follows goes',
    '        to ssh unchanged. A host with the name of a word below: svc ssh -- check',
    'check   makes sure that a valid certificate is there; ssh runs it before a login',
    'recheck asks the server whether it has revoked the certificate; check runs it in the background',
    'cert    does what check does, and prints the certificate; --renew asks for a new one; with HOST',
    '        it asks for a touch of the key if a group of that host demands one',
    'status  prints the stored certificate without the network',
    'add     puts the key and the certificate into the running ssh-agent until the certificate ends;',
    '        --time 1h ends earlier; --confirm lets the agent ask before each use',
    '',
    'Connect ssh with: svc setup ssh --host PATTERN',
  ],
  async run(args, context) {
    if (args[0] === 'check') {
      if (!isFresh(context, args[1])) {
        const { check } = await import('../host-certificate.js');
        return check(args.slice(1), context, USAGE);
      }
      const folder = context.folder();
      const { terminal } = context;
      if (terminal.isWatched) tellOfTouch(terminal, folder.path, now(), hostName(args[1]));
      if (hasAgents(folder.path)) {
        const { refreshAgent } = await import('../../agent/agents.js');
        refreshAgent(folder, certificateIn(folder.read(SSH_FILES.certificate) ?? ''));
      }
      if (takeRecheck(folder.path, now())) {
        const { startRevocationCheck } = await import('../revocation-check.js');
        startRevocationCheck(context.server());
      }
      return 0;
    }
    const others = argumentsOfSsh(args, context);
    if (others) {
      const { logInTo } = await import('./host-login.js');
      return logInTo(others, context, USAGE);
    }
    const { runSsh } = await import('./actions.js');
    return runSsh(args, context, USAGE);
  },
};

/** Returns the arguments for `ssh`; undefined if they are those of another form of the command. */
function argumentsOfSsh(
  args: readonly string[],
  { commands }: CommandContext,
): readonly string[] | undefined {
  const [word = '--help'] = args;
  if (word === '--') return args.slice(1);
  const own = commands.find(({ name }) => name === 'ssh')?.ownWords ?? [];
  return own.includes(word) || word.startsWith('--') ? undefined : args;
}

/**
 * Returns true if an SSH login can use a stored certificate. It reads only a few files, so that
 * most SSH logins load no other code.
 */
function isFresh(context: CommandContext, host: string | undefined): boolean {
  try {
    return hasFreshCertificate(context.folder().path, now(), hostName(host));
  } catch {
    return false; // The full check states the fault.
  }
}
