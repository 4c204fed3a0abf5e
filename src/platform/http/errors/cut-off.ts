import { asDomainError } from './as-domain-error.js';
import { logError } from './error-log.js';

/**
 * Logs an error in a streamed response and closes the connection. Otherwise the client would take
 * the part that it got for the whole response.
 */
export function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
