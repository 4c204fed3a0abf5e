import { asDomainError } from './as-domain-error.js';
import { logError } from './error-log.js';

/**
 * Closes the connection when a part of a streamed response fails, so that a client does not take a
 * part for the whole.
 */
export function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
