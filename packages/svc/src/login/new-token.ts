import { CliFailure, STATUS } from '../program/failure.js';
import { now } from '../program/clock.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { clockFailure } from '../server/clock-difference.js';
import { ServerClient, accepted, codeOf, detailOf, documentOf } from '../server/server-client.js';
import type { PlainAnswer } from '../server/transport.js';
import { writeToken, type StoredToken, type TokenKind } from '../server/stored-token.js';
import type { DpopKey } from '../server/dpop-key.js';
import type { Terminal } from '../terminal/terminal.js';

/** The id by which the server knows this command as an OAuth client. */
export const CLIENT_ID = 'svc-cli';

/** The objects that every way to log in needs. */
export interface LoginParts {
  readonly server: string;
  readonly folder: PrivateFolder;
  readonly terminal: Terminal;
  readonly dpopKey: DpopKey;
  readonly client: ServerClient;
  readonly kind: TokenKind;
}

/** The scopes of a login by a device code. The server gives no other scopes. */
export const DEVICE_SCOPE = 'openid svc:credentials';

/**
 * Returns the scopes to request at a login. Only `svc login --admin` requests the scopes for
 * administering the organization and its applications.
 */
export function scopeOf(kind: TokenKind): string {
  return `openid email svc:credentials${kind === 'admin-token' ? ' svc:admin svc:applications' : ''}`;
}

/** The answer of the token endpoint (RFC 6749 §5.1). */
interface TokenAnswer {
  readonly access_token?: unknown;
  readonly token_type?: unknown;
  readonly expires_in?: unknown;
  readonly scope?: unknown;
  /** The e-mail address of the user. Only the answer of an introspection has it. */
  readonly email?: unknown;
}

/**
 * Stores the token of an answer, with the user's name that `/oauth/userinfo` gives.
 *
 * @throws CliFailure with status 4 if the server refuses, or if a login with `--admin` gets no
 *   token with the scope `svc:admin`; with status 1 if the refusal is due to a wrong clock, or if
 *   the token is not bound to the DPoP key
 */
export async function storeToken(parts: LoginParts, answer: PlainAnswer): Promise<StoredToken> {
  const { folder, kind } = parts;
  if (answer.status >= 400 && answer.status < 500) throw refusal(answer);
  const { access_token: token, token_type: type, expires_in: seconds, scope } = read(answer);
  if (typeof token !== 'string' || typeof seconds !== 'number' || type !== 'DPoP') {
    throw new CliFailure(
      'The server gave no token that is bound to this machine.',
      'Run: svc doctor',
    );
  }
  const scopes = typeof scope === 'string' ? scope : '';
  if (kind === 'admin-token' && !scopes.split(' ').includes('svc:admin')) {
    const message = 'You are not an admin of your organization.';
    throw new CliFailure(message, 'Log in without --admin: svc login', STATUS.refused);
  }
  const stored: StoredToken = {
    access_token: token,
    scope: scopes,
    expires_at: new Date(now() + seconds * 1000).toISOString(),
    ...(await readOwner(parts, token)),
  };
  writeToken(folder, kind, stored);
  return stored;
}

function read(answer: PlainAnswer): TokenAnswer {
  return documentOf(accepted(answer));
}

function refusal(answer: PlainAnswer): CliFailure {
  const wrongClock = clockFailure(answer.headers, codeOf(answer));
  if (wrongClock) return wrongClock;
  const message = detailOf(answer) ?? `The server refused the login (${answer.status}).`;
  const isExpired = codeOf(answer) === 'invalid_grant';
  const whatToDo = isExpired ? 'Run svc login again.' : 'Ask an admin, or run: svc doctor';
  return new CliFailure(message, whatToDo, STATUS.refused);
}

/** The fields of the answer of `/oauth/userinfo` that are stored for `svc status`. */
interface Userinfo {
  readonly sub?: string;
  readonly email?: string;
  readonly name?: string;
  readonly hardware_aaguid?: string;
}

/**
 * Asks the server for the user of a token, and for the security key of the login. The model of the
 * key is left out if the server does not know it.
 */
async function readOwner(
  { server, folder, terminal, dpopKey }: LoginParts,
  token: string,
): Promise<Pick<StoredToken, 'user' | 'key'>> {
  const client = new ServerClient({ server, folder, terminal, dpopKey, accessToken: () => token });
  const user = await client.get<Userinfo>('/oauth/userinfo');
  const email = user.email ?? (await emailOf(client, token));
  const { keys } = await client.get<{ keys: readonly KeyRow[] }>('/v1/keys');
  const current = keys.find((key) => key.current) ?? keys[0];
  const aaguid = user.hardware_aaguid ?? current?.aaguid;
  return {
    user: {
      id: user.sub ?? '',
      ...(email === undefined ? {} : { email }),
      ...(user.name === undefined ? {} : { name: user.name }),
    },
    key: {
      ...(aaguid ? { aaguid } : {}),
      ...(current?.model ? { model: current.model } : {}),
    },
  };
}

/**
 * Asks for the user's e-mail address by an introspection (RFC 7662). A token without the scope
 * `email`, such as that of a device login, gets no address from the userinfo endpoint. The
 * introspection tells the address to the client of the token.
 */
async function emailOf(client: ServerClient, token: string): Promise<string | undefined> {
  const answer = await client.form('/oauth/introspect', { client_id: CLIENT_ID, token });
  const { email } = read(answer);
  return typeof email === 'string' ? email : undefined;
}

/** The fields of a key in the answer of `GET /v1/keys` that a login reads. */
interface KeyRow {
  readonly aaguid?: string;
  readonly model?: string | null;
  readonly current?: boolean;
}
