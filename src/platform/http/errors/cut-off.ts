import { asDomainError } from './as-domain-error.js';
import { logError } from './error-log.js';

/**
 * Logs an error in a streamed response and closes the connection, so that the client does not take
 * the part that it got for the whole.
 */
export function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
