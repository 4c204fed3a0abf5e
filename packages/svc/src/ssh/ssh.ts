import type { CommandContext } from '../command/command-context.js';
import type { Command } from '../command/command.js';
import { now } from '../program/clock.js';
import { hasFreshCertificate, hostName, takeRecheck } from './certificate-cache.js';

const USAGE = 'svc ssh check HOST\nsvc ssh recheck\nsvc ssh cert [HOST] [--renew]\nsvc ssh status';

/**
 * `svc ssh`: gets and shows the SSH certificate of this machine. `ssh` itself runs `svc ssh check`
 * before a login.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'check   makes sure that a valid certificate is there; ssh runs it before a login',
    'recheck asks the server whether it has revoked the certificate; check runs it in the background',
    'cert    does what check does, and prints the certificate; --renew asks for a new one; with HOST',
    '        it asks for a touch of the key if a group of that host demands one',
    'status  prints the stored certificate without the network',
    '',
    'Connect ssh with: svc setup ssh --host PATTERN',
  ],
  async run(args, context) {
    if (args[0] === 'check') {
      if (!isFresh(context, args[1])) {
        const { check } = await import('./host-certificate.js');
        return check(args.slice(1), context, USAGE);
      }
      if (takeRecheck(context.folder().path, now())) {
        const { startRevocationCheck } = await import('./revocation-check.js');
        startRevocationCheck(context.server());
      }
      return 0;
    }
    const { runSsh } = await import('./actions.js');
    return runSsh(args, context, USAGE);
  },
};

/**
 * Returns true if a login can use a stored certificate. It reads only a few files, so that most
 * logins load no other code.
 */
function isFresh(context: CommandContext, host: string | undefined): boolean {
  try {
    return hasFreshCertificate(context.folder().path, now(), hostName(host));
  } catch {
    return false; // The full check states the fault.
  }
}
