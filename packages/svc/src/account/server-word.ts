import { CLIENT_ID } from '../login/new-token.js';
import { CliFailure } from '../program/failure.js';
import type { StoredToken } from '../server/stored-token.js';
import { sendForm } from '../server/transport.js';

/** The longest wait for the server in milliseconds. */
const TIMEOUT = 5_000;

/**
 * The answer of the server to the question whether it accepts a login. `unknown` means that the
 * server did not say, for the given reason.
 */
export type ServerWord =
  { readonly says: 'accepted' | 'refused' } | { readonly says: 'unknown'; readonly reason: string };

/**
 * Asks the server whether it still accepts a token (RFC 7662). If the server cannot be reached, or
 * its answer does not say, the function does not throw, and the result is `unknown`.
 */
export async function askServer(
  server: string,
  { access_token: token }: StoredToken,
): Promise<ServerWord> {
  try {
    const fields = { client_id: CLIENT_ID, token };
    const { status, text } = await sendForm(`${server}/oauth/introspect`, fields, TIMEOUT);
    const active = status === 200 ? activeOf(text) : undefined;
    if (active !== undefined) return { says: active ? 'accepted' : 'refused' };
    return { says: 'unknown', reason: `The server answered with status ${status}.` };
  } catch (error) {
    if (error instanceof CliFailure) return { says: 'unknown', reason: error.message };
    throw error;
  }
}

function activeOf(text: string): boolean | undefined {
  try {
    const { active } = Object(JSON.parse(text)) as { readonly active?: unknown };
    return typeof active === 'boolean' ? active : undefined;
  } catch {
    return undefined;
  }
}
