import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { notJson } from '../server/server-client.js';
import { readToken } from '../server/stored-token.js';
import { AdminClient } from './acts/admin-client.js';
import { givenData } from './acts/given-data.js';

const USAGE = 'svc api METHOD PATH [--data JSON|@FILE|@-] [--if-match TAG]';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** `svc api`: sends one request to the API of the server, and prints the answer as it is. */
export const command: Command = {
  usage: USAGE,
  help: [
    'PATH begins with /api/v1 or /v1, and may have a query. The document is at /docs/api.',
    'The request has the token of svc login --admin; for /v1 that of svc login is enough.',
    '--data  is JSON, a file after @, or @- for standard input. Write no secret into the line of',
    '        the command: other programs of this machine can read it.',
  ],
  async run(args, context) {
    const names = { values: ['data', 'if-match'], positionals: 2, refusesDashes: true };
    const options = parseArguments(args, names, USAGE);
    const [given, to] = options.positionals;
    const method = given?.toUpperCase();
    if (method === undefined) throw usageFailure('The METHOD is missing.', USAGE);
    if (!METHODS.includes(method)) throw usageFailure(`${given} is no METHOD.`, USAGE);
    if (to === undefined) throw usageFailure('The PATH is missing.', USAGE);
    assertOwnPath(to, context.server());
    const data = options.value('data');
    const tag = options.value('if-match');
    const admin = new AdminClient(context, kindFor(to, context));
    const { headers, text } = await admin.request(method, to, {
      ...(data === undefined ? {} : { json: givenData(data, USAGE) }),
      ...(tag === undefined ? {} : { headers: { 'if-match': tag } }),
    });
    if (headers.get('content-type')?.startsWith('text/html') === true) throw notJson();
    context.terminal.answer(text);
  },
};

/**
 * Checks that a path is one of the API of the server, so that the token goes to no other server.
 * @throws CliFailure with status 2 for another path
 */
function assertOwnPath(to: string, server: string): void {
  const url = URL.canParse(to, server) ? new URL(to, server) : undefined;
  const isOwn = to.startsWith('/') && url?.origin === new URL(server).origin;
  if (isOwn && /^\/(?:api\/)?v1\//.test(url.pathname)) return;
  throw usageFailure(`${to} is no path of the API: it begins with /api/v1/ or /v1/.`, USAGE);
}

function kindFor(to: string, context: CommandContext): 'token' | 'admin-token' {
  const isAdmin = to.startsWith('/api/') || readToken(context.folder(), 'admin-token');
  return isAdmin ? 'admin-token' : 'token';
}
