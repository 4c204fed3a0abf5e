import { HttpException } from '@nestjs/common';
import { isDatabaseAway, isLostRace, isUnstorable } from '#platform/database/statements/faults.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** What the framework itself refuses, in our codes, and what its client is told. */
const FRAMEWORK_ERRORS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  400: ['invalid_request', 'The request is malformed.'],
  404: ['not_found', 'There is nothing here.'],
  405: ['method_not_allowed', 'This method is not allowed here.'],
};

/**
 * The DomainError of anything thrown. A database that is away is `unavailable`, never the client's fault; what nobody
 * foresaw is `internal`: logged whole as the cause, shown as nothing.
 */
export function asDomainError(thrown: unknown): DomainError {
  if (thrown instanceof DomainError) return thrown;
  if (isDatabaseAway(thrown)) {
    return new DomainError('unavailable', 'The service cannot reach its database. Try again.', {
      cause: thrown,
      retryAfter: 1,
    });
  }
  if (isLostRace(thrown)) {
    return new DomainError(
      'unavailable',
      'A concurrent request changed the same data. Try again.',
      {
        cause: thrown,
        retryAfter: 1,
      },
    );
  }
  if (isUnstorable(thrown)) {
    return new DomainError(
      'invalid_request',
      'The request contains characters that are not text. Remove them.',
    );
  }
  const status = thrown instanceof HttpException ? thrown.getStatus() : statusOf(thrown);
  const refused = status === undefined ? undefined : FRAMEWORK_ERRORS[status];
  if (refused) return new DomainError(...refused);
  return new DomainError('internal', 'The service failed. Try again later.', { cause: thrown });
}

/** Express marks what a client caused (a malformed percent-encoding, say) by a status on the error. */
function statusOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('status' in thrown)) return undefined;
  return typeof thrown.status === 'number' && thrown.status < 500 ? thrown.status : undefined;
}
