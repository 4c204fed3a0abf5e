import { DomainError } from '#platform/errors/domain-error.js';

/** The answer to a browser whose authorization request is over, or was never its own. */
export function signInOver(): DomainError {
  return new DomainError(
    'not_found',
    'This sign-in is over. Go back to the application and start again.',
  );
}
