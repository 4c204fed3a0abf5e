import { CliFailure, STATUS } from '../program/failure.js';
import { ServerClient, accepted } from '../server/server-client.js';
import type { StoredToken } from '../server/stored-token.js';
import { CLIENT_ID, type LoginParts } from './new-token.js';

/** Revokes a token at the server (RFC 7009). It is no failure if the token has already ended. */
async function revokeToken(
  { client }: Pick<LoginParts, 'client'>,
  { access_token: token }: StoredToken,
): Promise<void> {
  accepted(await client.form('/oauth/revoke', { token, client_id: CLIENT_ID }));
}

/** A session in the answer of `GET /v1/sessions`. */
interface SessionRow {
  readonly id: string;
  readonly current: boolean;
  readonly client: { readonly client_id: string } | null;
}

/**
 * Ends a login at the server. A session that belongs only to the command is ended. Otherwise only
 * the token is revoked, so that the session of the browser remains. It is no failure if the login
 * has already ended.
 */
export async function endLogin(parts: LoginParts, token: StoredToken): Promise<void> {
  const client = new ServerClient({ ...parts, accessToken: () => token.access_token });
  try {
    const { sessions } = await client.get<{ sessions: readonly SessionRow[] }>('/v1/sessions');
    const own = sessions.find((session) => session.current);
    if (own?.client?.client_id === CLIENT_ID) {
      await client.json('DELETE', `/v1/sessions/${own.id}`);
      return;
    }
  } catch (error) {
    if (error instanceof CliFailure && error.status === STATUS.notLoggedIn) return;
    throw error;
  }
  await revokeToken(parts, token);
}
