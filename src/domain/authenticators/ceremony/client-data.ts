import { Refusal } from '../refusal.js';

/**
 * Refuses a ceremony that ran inside another site's frame (WebAuthn §7.1 and §7.2, `crossOrigin`). Type, challenge and
 * origin are the library's to compare; this is the one member it does not look at.
 *
 * @param clientDataJSON the bytes as the browser hashed them
 * @throws Refusal
 */
export function refuseCrossOrigin(clientDataJSON: Buffer): void {
  let clientData: unknown;
  try {
    clientData = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(clientDataJSON));
  } catch {
    // Without its cause, which would quote the client's text into the log.
    throw new Refusal('The client data is not JSON.');
  }
  if (typeof clientData !== 'object' || clientData === null) {
    throw new Refusal('The client data is not a JSON object.');
  }
  if ('crossOrigin' in clientData && clientData.crossOrigin !== false) {
    throw new Refusal('The ceremony ran inside a page of another origin.');
  }
}
