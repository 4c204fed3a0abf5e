import { isValidAt, type SshCertificate } from '@svc/openssh';
import type { CommandContext } from '../command/command-context.js';
import { now } from '../program/clock.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { localTime, tableLines } from '../terminal/table.js';
import { ensureCertificate, renew, storedCertificate } from './renewal.js';
import { recheck } from './revocation-check.js';

/** Runs `svc ssh` if more is needed than a look at the stored certificate. */
export async function runSsh(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number | void> {
  const options = parseArguments(args, { flags: ['renew'], positionals: 2 }, usage);
  const [action, host] = options.positionals;
  if (action === 'check') return check(context);
  if (host === undefined && action === 'recheck') return recheck(context);
  if (host === undefined && action === 'cert') return show(context, options.has('renew'));
  if (host === undefined && action === 'status') return status(context);
  throw usageFailure('The command is missing or unknown.', usage);
}

/**
 * Runs inside of `ssh`: silent when a certificate is there, otherwise one line on standard error.
 */
async function check(context: CommandContext): Promise<number> {
  try {
    await ensureCertificate(context, context.server());
    // A renewal that takes too long does not hold up a login with the old certificate.
    return process.exit(0);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const next = error.whatToDo.charAt(0).toLowerCase() + error.whatToDo.slice(1);
    context.terminal.warn(`svc: ${error.message.replace(/\.$/, '')}; ${next}`);
    return error.status;
  }
}

async function show(context: CommandContext, isForced: boolean): Promise<void> {
  const server = context.server();
  const folder = context.folder(server);
  if (isForced) await folder.withLock('ssh', () => renew(context, server, folder));
  else await ensureCertificate(context, server);
  print(context, storedCertificate(folder));
}

function status(context: CommandContext): void {
  print(context, storedCertificate(context.folder()));
}

function print({ terminal }: CommandContext, certificate: SshCertificate | undefined): void {
  if (!certificate) {
    throw new CliFailure('No SSH certificate is stored.', 'Run: svc ssh cert');
  }
  const { serial, keyId, principals, validAfter, validBefore } = certificate;
  const isValid = isValidAt(certificate, now());
  const document = {
    serial: serial.toString(),
    key_id: keyId,
    principals,
    valid_after: new Date(validAfter).toISOString(),
    valid_before: Number.isFinite(validBefore) ? new Date(validBefore).toISOString() : null,
    is_valid: isValid,
  };
  const end = Number.isFinite(validBefore) ? localTime(new Date(validBefore)) : 'without end';
  const until = `${end}${isValid ? '' : ' (not valid now)'}`;
  const rows = [
    ['Certificate', keyId],
    ['Serial', serial.toString()],
    ['Principals', principals.join(', ')],
    ['Valid until', until],
  ];
  terminal.result(document, tableLines(rows));
}
