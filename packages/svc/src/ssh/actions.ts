import { isValidAt, type SshCertificate } from '@svc/openssh';
import type { CommandContext } from '../command/command-context.js';
import { now } from '../program/clock.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { localTime, tableLines } from '../terminal/table.js';
import { certificateIn, hostFile, hostName } from './certificate-cache.js';
import { ensureCertificateFor } from './host-certificate.js';
import { renew, storedCertificate } from './renewal.js';
import { recheck } from './revocation-check.js';

/** Runs the words of `svc ssh` for which a look at the stored certificate is not enough. */
export async function runSsh(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number | void> {
  const options = parseArguments(args, { flags: ['renew'], positionals: 2 }, usage);
  const [action, host] = options.positionals;
  if (action === 'check') return check(context, host);
  if (host === undefined && action === 'recheck') return recheck(context);
  if (action === 'cert') return show(context, options.has('renew'), host);
  if (host === undefined && action === 'status') return status(context);
  throw usageFailure('The command is missing or unknown.', usage);
}

/**
 * Makes sure that a certificate is there, as `ssh` demands before a login. It prints nothing if so,
 * and otherwise one line on standard error.
 */
async function check(context: CommandContext, host: string | undefined): Promise<number> {
  try {
    await ensureCertificateFor(context, context.server(), host);
    // A renewal that takes too long does not hold up a login with the old certificate.
    return process.exit(0);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    context.terminal.warn(`svc: ${lineOf(error)}`);
    return error.status;
  }
}

/** Writes a failure as one line. */
function lineOf({ message, whatToDo }: CliFailure): string {
  if (whatToDo.endsWith('.')) return `${message} ${whatToDo}`;
  return `${message.replace(/\.$/, '')}; ${whatToDo.charAt(0).toLowerCase()}${whatToDo.slice(1)}`;
}

async function show(
  context: CommandContext,
  isForced: boolean,
  text: string | undefined,
): Promise<void> {
  const server = context.server();
  const folder = context.folder(server);
  if (isForced) await folder.withLock('ssh', () => renew(context, server, folder));
  await ensureCertificateFor(context, server, text);
  const host = hostName(text);
  const ofHost = host === undefined ? undefined : certificateIn(folder.read(hostFile(host)) ?? '');
  print(context, ofHost ?? storedCertificate(folder));
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
