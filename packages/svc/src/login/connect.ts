import { CliFailure, STATUS } from '../program/failure.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { NOTICE_HEADER, tellOfNotice } from '../server/account-notice.js';
import { DpopKey } from '../server/dpop-key.js';
import { ServerClient, type StepUpChallenge } from '../server/server-client.js';
import { isOfSameUser, readAnyToken, readToken, type TokenKind } from '../server/stored-token.js';
import type { AnswerHeaders } from '../server/transport.js';
import { tellOfVersion, VERSION_HEADER } from '../server/version-notice.js';
import type { Terminal } from '../terminal/terminal.js';
import type { LoginParts } from './new-token.js';

/** The server of a command, the folder of its secrets, and the terminal. */
export interface Connection {
  readonly server: string;
  readonly folder: PrivateFolder;
  readonly terminal: Terminal;
  readonly kind: TokenKind;
  /**
   * True for a plugin, such as that of kubectl, which gets no input of the user. A touch of the key
   * happens in the browser, so it is possible if the user only sees standard error.
   */
  readonly isPlugin?: boolean;
  /**
   * True if the command prints a line about a notice for the account, or about a newer version of
   * the server.
   */
  readonly tellsNotices?: boolean;
  /** True if another program waits for the command, so that answers must be fast. */
  readonly isForTool?: boolean;
}

/**
 * Returns a client that sends the stored token to a server. If the server demands a new touch, the
 * user logs in again in the browser. An admin with an expired token does the same.
 */
export async function connect(
  connection: Connection,
  asksForTouch: boolean,
): Promise<ServerClient> {
  const { folder, kind, terminal } = connection;
  const isAdmin = kind === 'admin-token';
  const canTouch = isAdmin
    ? terminal.isAttended
    : connection.isPlugin === true
      ? terminal.isWatched
      : terminal.isInteractive;
  const canRenew = canTouch && asksForTouch && readAnyToken(folder, kind) !== undefined;
  if (isAdmin && !readToken(folder, kind) && !canRenew) {
    const message = 'This needs the rights of an admin.';
    throw new CliFailure(message, 'Run: svc login --admin', STATUS.notLoggedIn);
  }
  const dpopKey = await DpopKey.of(folder);
  return new ServerClient({
    ...connection,
    dpopKey,
    accessToken: () => readToken(folder, kind)?.access_token,
    ...(connection.tellsNotices === true
      ? { onAnswer: (headers: AnswerHeaders) => tell(headers, connection) }
      : {}),
    ...(canTouch && asksForTouch ? { stepUp: stepUpOf(connection), renewsExpired: isAdmin } : {}),
  });
}

/** Prints what the headers of an answer say about the user's account and the server's version. */
function tell(headers: AnswerHeaders, connection: Connection): void {
  const notice = headers.get(NOTICE_HEADER);
  if (notice !== null) tellOfNotice(notice, connection);
  const version = headers.get(VERSION_HEADER);
  if (version !== null) tellOfVersion(version, connection);
}

/**
 * Returns the function that logs the user in again in the browser, if the server demands a new
 * touch of the security key. If another user logs in there, the command ends, because it began for
 * the user who was logged in before.
 */
export function stepUpOf(connection: Connection) {
  return async (challenge: StepUpChallenge) => {
    connection.terminal.warn('This needs a fresh touch of your security key.');
    const { loginByCode } = await import('./code-login.js');
    const { endLogin } = await import('./revocation.js');
    const earlier = readAnyToken(connection.folder, connection.kind);
    const parts = await loginParts({ ...connection, isForTool: false });
    const token = await loginByCode(parts, challenge);
    if (!earlier) return;
    await endLogin(parts, earlier).catch(() => {}); // the old login expires by itself
    if (isOfSameUser(earlier, token)) return;
    const message = 'Another user logged in in the middle of the command, so it was not finished.';
    throw new CliFailure(message, 'Run the command again.', STATUS.refused);
  };
}

/**
 * Returns what a login needs: the DPoP key of this machine, which the first login creates, and a
 * client without a token.
 */
export async function loginParts(connection: Connection): Promise<LoginParts> {
  const dpopKey = await DpopKey.of(connection.folder);
  const client = new ServerClient({ ...connection, dpopKey, accessToken: () => undefined });
  return { ...connection, dpopKey, client };
}
