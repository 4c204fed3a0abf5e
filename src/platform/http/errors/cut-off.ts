import { asDomainError } from './as-domain-error.js';
import { logError } from './error-log.js';

/**
 * Closes the connection if a streamed response fails before its end, so that a client does not take
 * a part for the whole.
 */
export function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
