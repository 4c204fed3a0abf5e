import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { Members } from '../members.service.js';
import type { Admin } from '../users.repository.js';
import { isApiTokenAccepted, type Program } from './api-tokens.repository.js';

/** A caller that reads data of an organization: an admin, or a program by its API token. */
export type Reader = Admin | Program;

/**
 * Checks that a caller may still read data of the organization. A read in several batches calls
 * this function before each batch, because the right to read can end in between.
 *
 * @throws DomainError admin_required for an admin, unauthenticated for a program
 */
export async function checkReader(
  tx: EntityManager,
  members: Pick<Members, 'checkAdmin'>,
  reader: Reader,
): Promise<void> {
  if ('sessionId' in reader) return members.checkAdmin(tx, reader);
  if (await isApiTokenAccepted(tx, reader.apiTokenId)) return;
  throw new DomainError('unauthenticated', 'The API token has ended.');
}
