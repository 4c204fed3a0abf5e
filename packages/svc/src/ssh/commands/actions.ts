import { isValidAt, type SshCertificate } from '@svc/openssh';
import { addToAgent } from '../../agent/agents.js';
import type { CommandContext } from '../../command/command-context.js';
import { now } from '../../program/clock.js';
import { parseArguments } from '../../program/arguments.js';
import { CliFailure, usageFailure } from '../../program/failure.js';
import { localTime, tableLines } from '../../terminal/table.js';
import { certificateIn, hostName, lacksGroup } from '../certificate-cache.js';
import {
  ensureCertificateFor,
  lineFor,
  renewCertificates,
  touchForGroups,
} from '../host-certificate.js';
import { withLogin } from './host-login.js';
import { recheck } from '../revocation-check.js';
import { storedCertificate } from '../stored-certificate.js';

/** Runs the commands of `svc ssh` that a user types. */
export async function runSsh(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number | void> {
  if (args[0] === 'add') return add(args.slice(1), context, usage);
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
  const host = hostName(text);
  const before = lineFor(folder, host);
  if (isForced) await renewCertificates(context, server, text);
  await ensureCertificateFor(context, server, text);
  const isNew = lineFor(folder, host) !== before;
  if (host !== undefined) await touchForGroups(context, server, host, isNew);
  const ofHost = certificateIn(lineFor(folder, host) ?? '');
  const isLacking = host !== undefined && lacksGroup(folder.path, now(), host);
  print(context, ofHost ?? storedCertificate(folder), isLacking);
}

/**
 * Puts the key and the certificate into the running agent, which forgets them when the certificate
 * expires, or after `--time`.
 */
async function add(args: readonly string[], context: CommandContext, usage: string): Promise<void> {
  const options = parseArguments(args, { flags: ['confirm'], values: ['time'] }, usage);
  const time = options.value('time');
  const seconds = time === undefined ? undefined : secondsOf(time, usage);
  const server = context.server();
  const folder = context.folder(server);
  await withLogin(context, server, () => ensureCertificateFor(context, server, undefined));
  const certificate = storedCertificate(folder);
  if (!certificate) throw new CliFailure('No SSH certificate is stored.', 'Run: svc ssh cert');
  const until = new Date(
    addToAgent(folder, certificate, { seconds, confirm: options.has('confirm') }),
  );
  const document = { serial: certificate.serial.toString(), until: until.toISOString() };
  context.terminal.result(document, [
    `The agent holds your SSH key and certificate until ${localTime(until)}.`,
  ]);
}

/** The seconds of the units of a time, as in `ssh-add -t`. */
const UNITS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

function secondsOf(text: string, usage: string): number {
  const [, number, unit = ''] = /^(\d{1,9})([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number ?? 0) * (UNITS[unit] ?? 0);
  if (seconds < 1) throw usageFailure(`"${text}" is no time such as 30m or 8h.`, usage);
  return seconds;
}

function status(context: CommandContext): void {
  print(context, storedCertificate(context.folder()));
}

/**
 * Prints a certificate.
 *
 * @param isLacking true if it lacks a group of hosts that demands a touch
 */
function print(
  { terminal }: CommandContext,
  certificate: SshCertificate | undefined,
  isLacking = false,
): void {
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
    ...(isLacking && { touch_needed: true }),
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
