import type { AdmittedRequest } from './caller.js';

/**
 * Decides about the limit and the caller of a request that has thrown an error, if neither a guard
 * nor a statement has done so.
 *
 * @returns the error that the response must state: a refusal comes before the other error
 */
export async function refusalBefore(
  thrown: unknown,
  { unconfirmed, limit }: AdmittedRequest,
): Promise<unknown> {
  try {
    await (unconfirmed ? unconfirmed.confirm() : limit?.decide());
    return thrown;
  } catch (refusal) {
    return refusal;
  }
}
