import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isValidAt, readCertificate, type SshCertificate } from '@svc/openssh';

/** The files of SSH in the folder of a server's secrets. */
export const SSH_FILES = {
  folder: 'ssh',
  identity: 'ssh/id',
  publicKey: 'ssh/id.pub',
  certificate: 'ssh/certificate.pub',
  lastRecheck: 'ssh/last-recheck',
} as const;

/** A certificate is renewed on use when it has less than this many milliseconds left. */
const RENEWAL_MARGIN = 10 * 60_000;

/**
 * Reads a line in the format of `id-cert.pub`. A line that holds no certificate gives undefined.
 */
export function certificateIn(line: string): SshCertificate | undefined {
  try {
    return readCertificate(line);
  } catch {
    return undefined;
  }
}

/** The server is asked about a stored certificate once in this many milliseconds at most. */
const RECHECK_INTERVAL = 5_000;

/**
 * Tells if the server should be asked whether the stored certificate is revoked, and records the
 * time: many logins at once ask once.
 *
 * @param folder the folder of the server's secrets
 */
export function takeRecheck(folder: string, now: number): boolean {
  const file = `${folder}/${SSH_FILES.lastRecheck}`;
  try {
    const last = statSync(file, { throwIfNoEntry: false });
    const age = now - (last?.mtimeMs ?? 0);
    if (Math.abs(age) < RECHECK_INTERVAL) return false;
    if (last) rmSync(file, { force: true });
    writeFileSync(file, '', { mode: 0o600, flag: 'wx' });
    return true;
  } catch {
    // Another login asks, or the folder cannot be written: this login goes on without the question.
    return false;
  }
}

/**
 * Tells if a login can use the stored certificate without a renewal. Every `ssh` waits for this
 * answer: it reads two files and loads nothing else.
 *
 * @param folder the folder of the server's secrets
 */
export function hasFreshCertificate(folder: string, now: number): boolean {
  try {
    const certificate = certificateIn(readFileSync(`${folder}/${SSH_FILES.certificate}`, 'latin1'));
    return (
      certificate !== undefined &&
      isValidAt(certificate, now, RENEWAL_MARGIN) &&
      existsSync(`${folder}/${SSH_FILES.identity}`)
    );
  } catch {
    return false;
  }
}
