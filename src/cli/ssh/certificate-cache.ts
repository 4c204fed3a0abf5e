import { existsSync, readFileSync } from 'node:fs';
import { isValidAt, readCertificate, RENEWAL_MARGIN } from './certificate.js';

/** The files of SSH in the folder of a server's secrets. */
export const SSH_FILES = {
  folder: 'ssh',
  identity: 'ssh/id',
  publicKey: 'ssh/id.pub',
  certificate: 'ssh/certificate.pub',
} as const;

/**
 * Tells if a login can use the stored certificate without a renewal. Every `ssh` waits for this answer: it reads two
 * files and loads nothing else.
 *
 * @param folder the folder of the server's secrets
 */
export function hasFreshCertificate(folder: string, now: number): boolean {
  try {
    const certificate = readCertificate(
      readFileSync(`${folder}/${SSH_FILES.certificate}`, 'latin1'),
    );
    return (
      certificate !== undefined &&
      isValidAt(certificate, now, RENEWAL_MARGIN) &&
      existsSync(`${folder}/${SSH_FILES.identity}`)
    );
  } catch {
    return false;
  }
}
