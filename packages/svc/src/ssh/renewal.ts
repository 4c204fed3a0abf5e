import { isValidAt, type SshCertificate } from '@svc/openssh';
import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { setupNote } from '../changes/setup-note.js';
import { now, sleep } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { SET_CLOCK } from '../server/clock-difference.js';
import { ProofRefused, TouchNeeded } from '../server/server-client.js';
import { TOOL_TIMEOUT } from '../server/silence.js';
import { readAnyToken, readToken } from '../server/stored-token.js';
import { certificateIn, hasFreshCertificate, SSH_FILES } from './certificate-cache.js';
import { publicKeyOf, storedPublicKey } from './key-pair.js';
import { SSH_BLOCK } from './config-block.js';
import { recordIssued, storeCertificate, storedCertificate } from './stored-certificate.js';

/** The record of `svc setup ssh` in `config.json`, for each server of this service. */
export type SshNote = Readonly<Record<string, SshChoices>>;

/**
 * The part of that record for one server of this service: the choices of the user, and the patterns
 * of hosts that the server listed.
 */
export interface SshChoices {
  /** The patterns that the user gave. */
  readonly hosts: readonly string[];
  /**
   * The patterns that the server listed. If a pattern of a group of hosts begins with `!`, all
   * patterns of the group are one entry with commas.
   */
  readonly listed?: readonly string[];
  /**
   * The login names (principals) that certificates should have; without it, certificates have all
   * names of the user.
   */
  readonly principals?: readonly string[];
  /** True if the private key is in a security key. */
  readonly sk?: boolean;
  /** True if a running agent gets each new certificate, and the key. */
  readonly agent?: boolean;
  /** True if the agent asks the user before each use of the key. */
  readonly confirm?: boolean;
  /**
   * True if the block in `~/.ssh/config` also names the certificate of the single host. Undefined
   * for a block of an earlier version, which names only the certificate for all hosts.
   */
  readonly byHost?: boolean;
}

/** The line for a certificate that is not valid yet by the clock of this machine. */
const SLOW_CLOCK = `The clock of this machine is behind the server, so the certificate looks as if it were not valid yet. ${SET_CLOCK}`;

/** The line for a user whose groups of hosts have more names than one certificate can carry. */
export const TOO_MANY_NAMES = 'Your groups of hosts have too many names for one certificate.';

/** Returns what `svc setup ssh` has recorded; an empty object before the first setup. */
export function sshNote(context: CommandContext): SshNote {
  return (setupNote(context, SSH_BLOCK) ?? {}) as SshNote;
}

/**
 * The milliseconds for which an SSH login waits for a renewal while the old certificate is still
 * valid. This time is a little longer than the wait for one answer. So the missing answer of a
 * server is recorded, and the next SSH login does not ask that server.
 */
const PATIENCE = TOOL_TIMEOUT + 250;

/**
 * Makes sure that a valid certificate for all hosts is stored. A certificate that expires soon is
 * renewed, unless the login ends so soon that a new one would not be valid for longer. If the
 * server cannot be reached, the old certificate is kept as long as it is valid. If several
 * processes need a new one, only one asks the server.
 *
 * @throws CliFailure if no valid certificate can be had
 */
export async function ensureCertificate(context: CommandContext, server: string): Promise<void> {
  const folder = context.folder(server);
  if (hasFreshCertificate(folder.path, now())) return;
  const old = storedPublicKey(folder) === undefined ? undefined : storedCertificate(folder);
  const isUsable = old !== undefined && isValidAt(old, now());
  if (isUsable && !canLiveLonger(folder, old)) return;
  const renewal = folder.withLock('ssh', async () => {
    if (!hasFreshCertificate(folder.path, now())) await renew(context, server, folder);
  });
  if (!isUsable) return renewal;
  const isOver = renewal.then(
    () => undefined,
    (error: unknown) => error,
  );
  const problem = await Promise.race([isOver, sleep(PATIENCE)]);
  if (problem instanceof CliFailure && problem.status === STATUS.notLoggedIn) throw problem;
}

/** Asks the server for a certificate and stores it. The caller must hold the lock of the folder. */
export async function renew(
  context: CommandContext,
  server: string,
  folder: PrivateFolder,
): Promise<void> {
  storeAnswer(folder, await askForCertificate(context, server, folder));
}

/** The fields of the answer of `POST /v1/credentials/ssh` that the command reads. */
export interface CertificateAnswer {
  readonly certificate?: unknown;
  readonly host_groups?: unknown;
  readonly touch_needed?: unknown;
}

/** Stores the certificate for all hosts, and the groups of hosts that came with it. */
export function storeAnswer(folder: PrivateFolder, answer: CertificateAnswer): void {
  if (Array.isArray(answer.host_groups))
    folder.write(SSH_FILES.hostGroups, JSON.stringify(answer.host_groups));
  else folder.remove(SSH_FILES.hostGroups);
  storeCertificate(folder, String(answer.certificate));
}

/**
 * Asks the server for a certificate. The caller must hold the lock of the folder.
 *
 * @param host limits the certificate to the groups of this host
 */
export async function askForCertificate(
  context: CommandContext,
  server: string,
  folder: PrivateFolder,
  host?: string,
): Promise<CertificateAnswer> {
  const login = readToken(folder, 'token')?.access_token;
  if (login === undefined) {
    const had = readAnyToken(folder, 'token') !== undefined;
    throw loginNeeded(had ? 'your login has ended' : 'you are not logged in');
  }
  const { principals, sk = false }: Partial<SshChoices> = sshNote(context)[server] ?? {};
  const client = await context.client('token', { asksForTouch: false });
  try {
    const answer = await client.post<CertificateAnswer>('/v1/credentials/ssh', {
      public_key: await publicKeyOf(folder, sk),
      ...(principals && { principals }),
      ...(host !== undefined && { host }),
    });
    const line = typeof answer.certificate === 'string' ? answer.certificate : '';
    const certificate = certificateIn(line);
    if (!certificate) {
      throw new CliFailure('The answer of the server is no SSH certificate.', 'Run: svc doctor');
    }
    recordIssued(folder, line);
    // If another process has logged in meanwhile, perhaps as another user, that login removed what
    // the earlier one got. So this certificate is not stored, and a new one is requested.
    const isSameLogin = readAnyToken(folder, 'token')?.access_token === login;
    if (!isSameLogin) return await askForCertificate(context, server, folder, host);
    if (certificate.validAfter > now()) context.terminal.warn(`svc: ${SLOW_CLOCK}`);
    return answer;
  } catch (error) {
    const isLoginOver = error instanceof CliFailure && error.status === STATUS.notLoggedIn;
    if (!isLoginOver || error instanceof TouchNeeded || error instanceof ProofRefused) throw error;
    // The token has not expired, so the server has ended it.
    throw loginNeeded(`${new URL(server).host} has ended your login or removed your access`);
  }
}

/**
 * Returns true if a new certificate could be valid for longer than the old one. A certificate ends
 * at the latest with the login at the server, so a new certificate gains nothing when that login is
 * about to end.
 */
function canLiveLonger(folder: PrivateFolder, old: SshCertificate): boolean {
  const token = readAnyToken(folder, 'token');
  return token === undefined || Date.parse(token.expires_at) - old.validBefore > 60_000;
}

function loginNeeded(message: string): CliFailure {
  return new CliFailure(message, 'run: svc login', STATUS.notLoggedIn);
}
