import { Refusal } from '@svc/webauthn-policy';

/**
 * The members of the client data (WebAuthn §5.8.1) that this service checks. A client sent them,
 * and their types are not checked yet.
 */
export interface ClientData {
  readonly type?: unknown;
  readonly challenge?: unknown;
  readonly origin?: unknown;
  readonly tokenBinding?: unknown;
}

/**
 * Reads client data, and refuses a ceremony that ran in a frame of another site (WebAuthn Level 3
 * §7.1 and §7.2, `crossOrigin` and `topOrigin`). `fido2-lib` does not check these two members.
 *
 * @param clientDataJSON the bytes as the client hashed them
 * @throws Refusal
 */
export function readClientData(clientDataJSON: Buffer): ClientData {
  let clientData: unknown;
  try {
    clientData = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(clientDataJSON));
  } catch {
    // The refusal does not keep the error as its cause, because the text of the client would then
    // be in the log.
    throw new Refusal('The client data is not JSON.');
  }
  if (typeof clientData !== 'object' || clientData === null) {
    throw new Refusal('The client data is not a JSON object.');
  }
  const isFramed = 'crossOrigin' in clientData && clientData.crossOrigin !== false;
  if (isFramed || 'topOrigin' in clientData) {
    throw new Refusal('The ceremony ran inside a page of another origin.');
  }
  return clientData;
}
