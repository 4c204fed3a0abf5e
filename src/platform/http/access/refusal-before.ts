import { isOutage } from '#platform/database/statements/faults.js';
import type { AdmittedRequest } from './caller.js';

/**
 * Decides about the limit and the caller of a request that has thrown an error, if neither a guard
 * nor a statement has done so. If the database is away, only the limit is decided. A look-up would
 * wait for the database once more. It could also refuse a DPoP proof as used, which the statement
 * has spent if only its answer was lost.
 *
 * @returns the error that the response must state: a refusal comes before the other error
 */
export async function refusalBefore(
  thrown: unknown,
  { unconfirmed, limit }: AdmittedRequest,
): Promise<unknown> {
  const isConfirmed = unconfirmed && (unconfirmed.hasBegun || !isOutage(thrown));
  try {
    await (isConfirmed ? unconfirmed.confirm() : limit?.decide());
    return thrown;
  } catch (refusal) {
    return refusal;
  }
}
