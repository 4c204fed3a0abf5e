import type { PrivateFolder } from '../files/private-folder.js';
import { DpopKey } from '../server/dpop-key.js';
import { ServerClient } from '../server/server-client.js';
import { readToken, type TokenKind } from '../server/stored-token.js';
import type { Terminal } from '../terminal/terminal.js';

/** The server of a command, its folder and the terminal. */
export interface Connection {
  readonly server: string;
  readonly folder: PrivateFolder;
  readonly terminal: Terminal;
  readonly kind: TokenKind;
}

/** Returns a client of a server that sends the stored token, and logs in again for a fresh touch. */
export async function connect(connection: Connection): Promise<ServerClient> {
  const { server, folder, terminal, kind } = connection;
  const dpopKey = await DpopKey.of(folder);
  return new ServerClient({
    server,
    terminal,
    dpopKey,
    accessToken: () => readToken(folder, kind)?.access_token,
  });
}
