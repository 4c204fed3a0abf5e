import { StandardSchemaValidationPipe } from '@nestjs/common';
import { DomainError } from '#platform/errors/domain-error.js';

const MOST_ISSUES = 5;

/** Global: holds bodies, queries and parameters to the schema their decorator names. */
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
