import { existsSync } from 'node:fs';
import type { CommandContext } from '../../command/command-context.js';
import { now } from '../../program/clock.js';
import { CliFailure, STATUS, usageFailure } from '../../program/failure.js';
import { nearestWord } from '../../program/suggestion.js';
import { ANY_TOUCH, ProofRefused } from '../../server/server-client.js';
import { readAnyToken } from '../../server/stored-token.js';
import { runInPlace } from '../../child/in-place.js';
import { hostFile, hostName, isHostOf, SSH_FILES, tellOfTouch } from '../certificate-cache.js';
import { sshPath } from '../config-block.js';
import { ensureCertificateFor, touch } from '../host-certificate.js';
import { sshNote } from '../renewal.js';

/** The exit status of `ssh` for a failure of its own, such as an unknown host. */
const FAILED = 255;

/** The letters of the options of `ssh` that have a value (ssh(1)). */
const WITH_VALUE = 'BDEFIJLOPQRSWbceilmopw';

/** The parts of the arguments of `ssh` that decide which certificate is needed. */
interface Destination {
  /** The host, without a user and a port; undefined if the arguments name none. */
  readonly host: string | undefined;
  /** True if `-F` names another configuration, which has no block of `svc setup ssh`. */
  readonly hasOwnConfig: boolean;
}

/**
 * `svc ssh HOST`: makes sure that a valid certificate for the host is stored, and runs `ssh`, which
 * gets every argument unchanged. If no block of `svc setup ssh` covers the host, options in front
 * of these arguments name the key and the certificate.
 *
 * @returns the exit status of `ssh`
 * @throws CliFailure without a login, and if no group of hosts admits the person
 */
export async function logInTo(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number> {
  if (args.length === 0) throw usageFailure('The host is missing.', usage);
  const server = context.server();
  const { host, hasOwnConfig } = destinationOf(args);
  await withLogin(context, server, () => ensureCertificateFor(context, server, host));
  const note = sshNote(context)[server];
  const patterns = [...(note?.hosts ?? []), ...(note?.listed ?? [])];
  const isCovered =
    !hasOwnConfig &&
    host !== undefined &&
    patterns.some((pattern) => isHostOf(pattern.split(','), host));
  // Otherwise `ssh` runs `svc ssh check`, which says so.
  if (!isCovered) {
    tellOfTouch(context.terminal, context.folder(server).path, now(), hostName(host));
  }
  const own = isCovered ? [] : identityOptions(context, server, host);
  const status = await runInPlace('ssh', [...own, ...args], 'Install the OpenSSH client.');
  const words = context.commands.find(({ name }) => name === 'ssh')?.words ?? [];
  const near =
    status === FAILED && args.length === 1 ? nearestWord(args[0] ?? '', words) : undefined;
  if (near !== undefined) context.terminal.warn(`svc: Did you mean svc ssh ${near}?`);
  return status;
}

/**
 * Runs a function that needs a login at the server (`svc login`). If that login has ended and a
 * person is at the terminal, the person logs in again in the browser. Then the function is run once
 * more.
 */
export async function withLogin(
  context: CommandContext,
  server: string,
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    const { terminal } = context;
    const folder = context.folder(server);
    const isLoginOver = error instanceof CliFailure && error.status === STATUS.notLoggedIn;
    const canLogIn = terminal.isInteractive && readAnyToken(folder, 'token') !== undefined;
    if (!isLoginOver || error instanceof ProofRefused || !canLogIn) throw error;
    await touch(context, server, ANY_TOUCH);
    await act();
  }
}

/**
 * Finds the host among the arguments of `ssh`, by its rules for options (getopt(3)). Options may
 * also follow the host, up to the command.
 */
function destinationOf(args: readonly string[]): Destination {
  let host: string | undefined;
  let hasOwnConfig = false;
  for (let at = 0; at < args.length; at += 1) {
    const text = args[at] ?? '';
    const isOption = text.startsWith('-') && text.length > 1;
    if (isOption && text !== '--') {
      const letters = text.slice(1);
      const valued = letters.split('').findIndex((letter) => WITH_VALUE.includes(letter));
      if (letters[valued] === 'F') hasOwnConfig = true;
      if (valued === letters.length - 1 && valued >= 0) at += 1; // the value is the next argument
      continue;
    }
    if (host !== undefined) break; // the command begins
    if (text === '--') return { host: hostOf(args[at + 1]), hasOwnConfig };
    host = hostOf(text);
    if (host === undefined) break;
  }
  return { host, hasOwnConfig };
}

/** Returns the host of `[user@]host` or `ssh://[user@]host[:port]`; undefined if there is none. */
function hostOf(text: string | undefined): string | undefined {
  const uri = /^ssh:\/\/(.*?)\/?$/.exec(text ?? '')?.[1];
  const place = (uri ?? text ?? '').split('@').at(-1) ?? '';
  const host = uri === undefined ? place : place.replace(/:\d+$/, '');
  return host.replace(/^\[(.*)\]$/, '$1') || undefined;
}

/** Returns the options of `ssh` that name the key and the certificates. */
function identityOptions(
  context: CommandContext,
  server: string,
  host: string | undefined,
): readonly string[] {
  const folder = context.folder(server);
  const name = hostName(host);
  const files = [...(name === undefined ? [] : [hostFile(name)]), SSH_FILES.certificate];
  const certificates = files
    .map((file) => folder.file(file))
    .filter((file) => existsSync(file))
    .map((file) => `CertificateFile="${sshPath(file)}"`);
  const key = `IdentityFile="${sshPath(folder.file(SSH_FILES.identity))}"`;
  return ['IdentitiesOnly=yes', key, ...certificates].flatMap((option) => ['-o', option]);
}
