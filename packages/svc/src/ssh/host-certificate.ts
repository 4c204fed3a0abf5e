import { mkdirSync, readdirSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { isValidAt, type SshCertificate } from '@svc/openssh';
import { refreshAgent } from '../agent/agents.js';
import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { parseArguments } from '../program/arguments.js';
import { now } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import {
  ANY_TOUCH,
  ServerRefusal,
  TouchNeeded,
  type StepUpChallenge,
} from '../server/server-client.js';
import {
  certificateIn,
  groupsOf,
  hasFreshCertificate,
  hasValidCertificate,
  hostFile,
  hostName,
  LACKS_GROUP,
  lacksGroup,
  SSH_FILES,
  tellOfTouch,
} from './certificate-cache.js';
import {
  askForCertificate,
  ensureCertificate,
  renew,
  sshNote,
  TOO_MANY_NAMES,
  type CertificateAnswer,
} from './renewal.js';
import { adoptEarlierCertificate, linkTo, storedCertificate } from './stored-certificate.js';

/**
 * Makes sure that a valid certificate is stored. `ssh` runs this before it logs in to a host. After
 * a failure it prints one line on standard error. On success it prints nothing, except a line if
 * the certificate lacks a group of the host that demands a touch: to a person, or if the
 * certificate is new.
 */
export async function check(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number> {
  const [host] = parseArguments(args, { positionals: 1 }, usage).positionals;
  try {
    const server = context.server();
    const folder = context.folder(server);
    const name = hostName(host);
    const before = lineFor(folder, name);
    await ensureCertificateFor(context, server, host);
    const { terminal } = context;
    if (terminal.isWatched || lineFor(folder, name) !== before) {
      tellOfTouch(terminal, folder.path, now(), name);
    }
    // The exit also ends a renewal that still runs: the old certificate is valid, so the SSH login
    // does not wait for a new one.
    return process.exit(0);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    context.terminal.warn(`svc: ${lineOf(error)}`);
    return error.status;
  }
}

/** Returns a failure as one line, which has the message and the next step. */
function lineOf({ message, whatToDo }: CliFailure): string {
  if (whatToDo === '') return message;
  if (whatToDo.endsWith('.')) return `${message} ${whatToDo}`;
  return `${message.replace(/\.$/, '')}; ${whatToDo.charAt(0).toLowerCase()}${whatToDo.slice(1)}`;
}

/**
 * Makes sure that a valid certificate for a host is stored. It first asks the server for a
 * certificate for all hosts. It asks for a certificate for this host in two cases. Either the user
 * is in too many groups of hosts for one certificate, or the certificate for all hosts is not valid
 * for this host. If `svc setup ssh --agent` was chosen, a running agent gets the certificate.
 *
 * @throws CliFailure if no valid certificate can be had, or if the person has no access
 */
export async function ensureCertificateFor(
  context: CommandContext,
  server: string,
  text: string | undefined,
): Promise<void> {
  await renewFor(context, server, text);
  const folder = context.folder(server);
  refreshAgent(folder, storedCertificate(folder));
}

async function renewFor(
  context: CommandContext,
  server: string,
  text: string | undefined,
): Promise<void> {
  const folder = context.folder(server);
  const host = hostName(text);
  adoptEarlierCertificate(folder);
  if (hasFreshCertificate(folder.path, now(), host)) return;
  await forAllHosts(host, () => ensureCertificate(context, server));
  // A stored certificate for the host is enough for this SSH login, even if it expires soon.
  if (host === undefined || hasValidCertificate(folder.path, now(), host)) return;
  const isStored = () => hasFreshCertificate(folder.path, now(), host);
  try {
    await renewForHost(context, server, host, isStored);
  } catch (error) {
    if (!canGoOn(folder, error)) throw explained(error, server, host);
  }
  const note = sshNote(context)[server];
  if (note && note.byHost !== true) {
    const message = `The block of svc in ~/.ssh/config is of an earlier version, and ${host} needs the present one.`;
    throw new CliFailure(message, 'Run: svc setup ssh');
  }
}

/**
 * Renews the certificate for all hosts, even if it is still valid for a long time. If the given
 * host has a certificate of its own, that certificate is renewed, too.
 *
 * @throws CliFailure if the server gives no certificate
 */
export async function renewCertificates(
  context: CommandContext,
  server: string,
  text: string | undefined,
): Promise<void> {
  const folder = context.folder(server);
  const host = hostName(text);
  await forAllHosts(host, () => folder.withLock('ssh', () => renew(context, server, folder)));
  if (host === undefined || lineFor(folder, host) === undefined) return;
  await renewForHost(context, server, host, () => false);
}

/**
 * Runs a function that asks for a certificate for all hosts. If the user is in too many groups of
 * hosts for one certificate, that is no failure for a login to one host.
 *
 * @throws CliFailure that says how to get fewer names, if no host was named
 */
async function forAllHosts(host: string | undefined, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!hasCode(error, 'too_many_principals')) throw error;
    if (host !== undefined) return;
    const whatToDo = 'Run: svc ssh cert HOST, or choose names: svc setup ssh --principal NAME';
    throw new CliFailure(TOO_MANY_NAMES, whatToDo, STATUS.refused, { cause: error });
  }
}

/**
 * Asks the server for a certificate for one host and stores it, after a touch of the security key
 * if the server demands one.
 *
 * @param isStored returns true if another process has stored a certificate for the host meanwhile
 */
function renewForHost(
  context: CommandContext,
  server: string,
  host: string,
  isStored: () => boolean,
): Promise<void> {
  const folder = context.folder(server);
  return withTouch(context, server, host, () =>
    folder.withLock('ssh', async () => {
      if (isStored()) return;
      storeForHost(folder, host, await askForCertificate(context, server, folder, host));
    }),
  );
}

/**
 * Returns true if an SSH login may try the stored certificate for all hosts, because it is still
 * valid. After a refusal by the server the login may not try it.
 */
function canGoOn(folder: PrivateFolder, error: unknown): boolean {
  if (!(error instanceof CliFailure) || error.status !== STATUS.failed) return false;
  const stored = storedCertificate(folder);
  return stored !== undefined && isValidAt(stored, now());
}

/**
 * Runs a function. If the server demands a touch of the security key, the function is run again
 * after the touch.
 */
async function withTouch(
  context: CommandContext,
  server: string,
  host: string,
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof TouchNeeded)) throw error;
    // `ssh` gives this process no standard input, but a person who sees standard error can touch
    // the key in the browser.
    if (!context.terminal.isWatched) {
      throw new CliFailure(error.message, `Run: svc ssh cert ${host}`, STATUS.notLoggedIn);
    }
    await touch(context, server, error.challenge);
    await act();
  }
}

/**
 * Asks for a touch of the security key if the certificate for a host lacks a group that demands
 * one, and then for another certificate. If no person can touch the key, or the touch fails, it
 * only says so, because the certificate opens the other groups of the host.
 *
 * @param isNew true if the certificate was stored by this command
 * @throws CliFailure if no valid certificate is left
 */
export async function touchForGroups(
  context: CommandContext,
  server: string,
  host: string,
  isNew: boolean,
): Promise<void> {
  const { terminal } = context;
  const { path } = context.folder(server);
  const isLacking = () => lacksGroup(path, now(), host);
  if (!isLacking()) return;
  try {
    // The rule may have changed since the certificate was stored.
    if (!isNew) await renewForHost(context, server, host, () => false);
    if (!terminal.isAttended) return tellOfTouch(terminal, path, now(), host);
    if (!isLacking()) return;
    await touch(context, server, ANY_TOUCH);
    await ensureCertificateFor(context, server, host);
  } catch (error) {
    // The stored certificate is valid for the other groups of the host.
    if (!(error instanceof CliFailure) || !isLacking()) throw error;
    return terminal.warn(`svc: ${lineOf(error)}`);
  }
  if (!isLacking()) return;
  terminal.warn(
    `svc: Some logins of ${host} still need a touch: by another key of yours, or with its PIN.`,
  );
}

/** Returns the line of the stored certificate for a single host; undefined if there is none. */
export function lineFor(folder: PrivateFolder, host: string | undefined): string | undefined {
  return host === undefined ? undefined : folder.read(hostFile(host));
}

/** Lets the user touch the security key in the browser, in a new login. */
export async function touch(
  context: CommandContext,
  server: string,
  challenge: StepUpChallenge,
): Promise<void> {
  const { stepUpOf } = await import('../login/connect.js');
  const { terminal } = context;
  await stepUpOf({ server, folder: context.folder(server), terminal, kind: 'token' })(challenge);
}

/**
 * Stores a certificate in a file that is named after its groups of hosts, and after the fact that
 * it lacks one. A link with the name of the host leads to that file.
 */
function storeForHost(folder: PrivateFolder, host: string, answer: CertificateAnswer): void {
  const lacking = answer.touch_needed === true ? LACKS_GROUP : '';
  const line = `${String(answer.certificate)}${lacking}`;
  const certificate = certificateIn(line) as SshCertificate;
  const names = `${groupsOf(certificate).join()}${lacking}`;
  const set = createHash('sha256').update(names).digest('hex').slice(0, 16);
  removeExpired(folder);
  folder.write(`${SSH_FILES.sets}/${set}.pub`, `${line}\n`);
  mkdirSync(folder.file(SSH_FILES.hosts), { recursive: true, mode: 0o700 });
  // `ssh` may use the name of a host in lower case, so there is a link for both spellings.
  for (const name of new Set([host, host.toLowerCase()])) {
    linkTo(folder.file(hostFile(name)), `../sets/${set}.pub`);
  }
}

function removeExpired(folder: PrivateFolder): void {
  for (const name of setsIn(folder)) {
    const certificate = certificateIn(folder.read(name) ?? '');
    if (!certificate || certificate.validBefore <= now()) folder.remove(name);
  }
}

/** Returns the paths of the certificates that are not for all hosts. */
export function setsIn(folder: PrivateFolder): string[] {
  try {
    return readdirSync(folder.file(SSH_FILES.sets)).map((name) => `${SSH_FILES.sets}/${name}`);
  } catch {
    return [];
  }
}

function explained(error: unknown, server: string, host: string): unknown {
  if (hasCode(error, 'not_assigned')) {
    const whatToDo = `Ask an admin of your organization, or see ${server}/account/reach.`;
    return new CliFailure(`You have no access to ${host}.`, whatToDo, STATUS.refused);
  }
  if (hasCode(error, 'browser_required')) {
    return new CliFailure((error as Error).message, 'Run: svc login', STATUS.refused);
  }
  return error;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof ServerRefusal && error.code === code;
}
