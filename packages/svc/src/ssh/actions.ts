import { isValidAt, type SshCertificate } from '@svc/openssh';
import type { CommandContext } from '../command/command-context.js';
import { now } from '../program/clock.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { localTime, tableLines } from '../terminal/table.js';
import { certificateIn, hostFile, hostName } from './certificate-cache.js';
import { ensureCertificateFor } from './host-certificate.js';
import { renew } from './renewal.js';
import { recheck } from './revocation-check.js';
import { storedCertificate } from './stored-certificate.js';

/** Runs the commands of `svc ssh` that a user types. */
export async function runSsh(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number | void> {
  const options = parseArguments(args, { flags: ['renew'], positionals: 2 }, usage);
  const [action, host] = options.positionals;
  if (host === undefined && action === 'recheck') return recheck(context);
  if (action === 'cert') return show(context, options.has('renew'), host);
  if (host === undefined && action === 'status') return status(context);
  throw usageFailure('The command is missing or unknown.', usage);
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
  const isEarly = validAfter > now();
  const why = isEarly ? 'not valid yet: check the clock of this machine' : 'not valid now';
  const until = `${end}${isValid ? '' : ` (${why})`}`;
  const rows = [
    ['Certificate', keyId],
    ['Serial', serial.toString()],
    ['Principals', principals.join(', ')],
    ['Valid until', until],
  ];
  terminal.result(document, tableLines(rows));
}
