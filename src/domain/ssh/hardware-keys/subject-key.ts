import { parseSshPublicKey, SshKeyRefusal, type SshPublicKey } from '@svc/openssh';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * Reads the public key that a client wants certified.
 *
 * @throws DomainError `invalid_public_key`, which says what is wrong and what to send instead
 */
export function readSubjectKey(line: string): SshPublicKey {
  try {
    return parseSshPublicKey(line);
  } catch (cause) {
    if (!(cause instanceof SshKeyRefusal)) throw cause;
    throw new DomainError('invalid_public_key', cause.message, { cause });
  }
}
