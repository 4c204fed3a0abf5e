import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { loginParts } from '../login/connect.js';
import { endLogin } from '../login/revocation.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure } from '../program/failure.js';
import { readAnyToken, readToken, removeCredentials, TOKEN_KINDS } from '../server/stored-token.js';

const USAGE = 'svc logout [--server URL]';

/** `svc logout`: ends the login at the server, then removes it from this machine. */
export const command: Command = {
  usage: USAGE,
  help: [
    'Ends the login at the server and removes the token and everything that came from it.',
    'SSH keys of `svc setup` stay: without a certificate they open nothing.',
    'Without a network it removes the files and warns.',
  ],
  async run(args, context) {
    parseArguments(args, {}, USAGE);
    const server = context.server();
    const folder = context.folder(server);
    const problem = await endAtServer(context, server, folder);
    const removed = readAnyToken(folder, 'token') !== undefined;
    removeCredentials(folder);
    if (problem !== undefined) {
      context.terminal.warn(`svc: The login may still be open at the server: ${problem}`);
      context.terminal.warn(`     End it there when you are online: ${server}/account/sessions`);
    }
    const isEnded = problem === undefined;
    const text = removed ? `Logged out of ${server}.` : `You were not logged in at ${server}.`;
    context.terminal.result({ server, ended_at_server: isEnded }, [text]);
  },
};

/**
 * Revokes both tokens (that of the login and that for admins) at the server.
 * @returns the reason why the server could not be reached; undefined if the tokens have ended
 */
async function endAtServer(
  { terminal }: CommandContext,
  server: string,
  folder: PrivateFolder,
): Promise<string | undefined> {
  const problems: string[] = [];
  for (const kind of TOKEN_KINDS) {
    try {
      const token = readToken(folder, kind);
      if (token) await endLogin(await loginParts({ server, folder, terminal, kind }), token);
    } catch (error) {
      if (!(error instanceof CliFailure)) throw error;
      problems.push(error.message);
    }
  }
  return problems[0];
}
