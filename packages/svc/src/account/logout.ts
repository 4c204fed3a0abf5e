import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { loginParts } from '../login/connect.js';
import { endLogin } from '../login/revocation.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { ServerRefusal } from '../server/server-client.js';
import { readAnyToken, readToken, removeCredentials, TOKEN_KINDS } from '../server/stored-token.js';
import { issuedSerials } from '../ssh/stored-certificate.js';

const USAGE = 'svc logout [--revoke] [--server URL]';

/** `svc logout`: ends the login at the server, then removes it from this machine. */
export const command: Command = {
  usage: USAGE,
  help: [
    'Ends the login at the server with its tokens, and removes from this machine what came from it.',
    'SSH keys of `svc setup` stay: without a certificate they open nothing.',
    'Without a network it removes the files and warns.',
    '--revoke  first revokes the SSH certificates that this machine got, for a lost or shared',
    '          machine: hosts refuse them too if a copy exists. If the server cannot do that, nothing',
    '          is removed. Credentials of AWS roles end by their own time.',
  ],
  async run(args, context) {
    const options = parseArguments(args, { flags: ['revoke'] }, USAGE);
    const server = context.server();
    const folder = context.folder(server);
    const revoked = options.has('revoke') ? await revokeCertificates(context, folder) : undefined;
    const problem = await endAtServer(context, server, folder);
    if (problem !== undefined && revoked !== undefined) throw notRevoked(problem);
    const removed = readAnyToken(folder, 'token') !== undefined;
    const holding = removeCredentials(folder);
    if (problem !== undefined) {
      context.terminal.warn(`svc: The login may still be open at the server: ${problem}`);
      context.terminal.warn(`     End it there when you are online: ${server}/account/sessions`);
    }
    if (holding.length > 0) warnOfAgents(context, server, revoked !== undefined);
    const isEnded = problem === undefined;
    const text = removed ? `Logged out of ${server}.` : `You were not logged in at ${server}.`;
    const document = { server, ended_at_server: isEnded };
    context.terminal.result(
      revoked === undefined ? document : { ...document, revoked_certificates: revoked },
      [text, ...(revoked === undefined ? [] : [`SSH certificates revoked: ${revoked}.`])],
    );
  },
};

/**
 * Warns that an ssh-agent may still hold the SSH key and a certificate, and says how to remove both
 * from the agent.
 */
function warnOfAgents({ terminal }: CommandContext, server: string, isRevoked: boolean): void {
  const what = 'did not confirm that it gave the SSH key back: it may be locked.';
  terminal.warn(`svc: An ssh-agent ${what}`);
  terminal.warn('     Unlock it (ssh-add -X) and run: svc logout');
  if (isRevoked) return;
  terminal.warn(`     Or revoke its certificate: ${server}/account/credentials`);
}

/**
 * Revokes the SSH certificates that this machine got and that are still valid. It is no failure if
 * the server does not know a certificate any more, or has revoked it already.
 *
 * @returns the number of certificates that this call revoked
 * @throws CliFailure if the server does not revoke them all
 */
async function revokeCertificates(context: CommandContext, folder: PrivateFolder): Promise<number> {
  const serials = issuedSerials(folder);
  if (serials.length === 0) return 0;
  const client = await context.client('token', { asksForTouch: false });
  let revoked = 0;
  for (const serial of serials) {
    try {
      await client.post(`/v1/account/certificates/${serial}/revoke`);
      revoked += 1;
    } catch (error) {
      if (error instanceof ServerRefusal && error.httpStatus === 404) continue;
      if (!(error instanceof CliFailure)) throw error;
      throw notRevoked(error.message, error.status === STATUS.notLoggedIn);
    }
  }
  return revoked;
}

function notRevoked(reason: string, needsLogin = false): CliFailure {
  const whatToDo = needsLogin
    ? 'Run: svc login, and then svc logout --revoke'
    : 'Run it again when you are online, or remove the files alone: svc logout';
  const message = `Not everything was revoked, and nothing was removed: ${reason}`;
  return new CliFailure(message, whatToDo, needsLogin ? STATUS.notLoggedIn : STATUS.failed);
}

/**
 * Revokes both tokens (that of the login and that for admins) at the server.
 * @returns the message of the first failure, such as a server that cannot be reached; undefined if
 *   both tokens have ended
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
