import { HttpException, StandardSchemaValidationPipe } from '@nestjs/common';
import { isOutage, isLostRace, isUnstorable } from '#platform/database/statements/faults.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The code and the text for each status of an error that the framework itself throws. */
const FRAMEWORK_ERRORS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  400: ['invalid_request', 'The request is malformed.'],
  404: ['not_found', 'There is nothing here.'],
  405: ['method_not_allowed', 'This method is not allowed here.'],
};

/**
 * Maps any thrown value to a DomainError. A database that cannot be used is `unavailable`, and
 * never the client's fault. Any unforeseen error is `internal`: it is logged with its cause, and
 * the client sees no detail.
 */
export function asDomainError(thrown: unknown): DomainError {
  if (thrown instanceof DomainError) return thrown;
  if (isOutage(thrown)) {
    return unavailable('The service cannot reach its database. Try again.', thrown);
  }
  if (isLostRace(thrown))
    return unavailable('A concurrent request changed the same data. Try again.', thrown);
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

function unavailable(detail: string, cause: unknown): DomainError {
  return new DomainError('unavailable', detail, { cause, retryAfter: 1 });
}

/**
 * Returns the HTTP status of an error that the client caused, such as a malformed percent-encoding;
 * undefined for any other error. Express sets a status below 500 on the errors of clients.
 */
function statusOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('status' in thrown)) return undefined;
  return typeof thrown.status === 'number' && thrown.status < 500 ? thrown.status : undefined;
}

const MOST_ISSUES = 5;

/**
 * Validates bodies, queries and parameters by the schema that their decorator names, on every
 * route. The error names at most {@link MOST_ISSUES} faults.
 */
export const validationPipe = new StandardSchemaValidationPipe({
  exceptionFactory: (issues) => {
    const lines = issues.slice(0, MOST_ISSUES).map((issue) => {
      const path = (issue.path ?? []).map((part) =>
        String(typeof part === 'object' ? part.key : part),
      );
      return path.length === 0 ? issue.message : `${path.join('.')}: ${issue.message}`;
    });
    return new DomainError('invalid_request', lines.join('; '));
  },
});
