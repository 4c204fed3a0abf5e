import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { STATUS, notLoggedIn } from '../program/failure.js';
import { readAnyToken, readToken } from '../server/stored-token.js';
import { localTime, tableLines } from '../terminal/table.js';

const USAGE = 'svc status';

/** `svc status`: shows the login of this machine from its own files, so that it works without a network. */
export const command: Command = {
  usage: USAGE,
  help: [
    'It reads the files of this machine alone, and works without a network.',
    `Exit status ${STATUS.notLoggedIn} means that no valid login is stored.`,
  ],
  async run(args, context) {
    parseArguments(args, {}, USAGE);
    const server = context.server();
    const folder = context.folder(server);
    const token = readToken(folder, 'token');
    if (!token) {
      const earlier = readAnyToken(folder, 'token');
      throw notLoggedIn(
        earlier
          ? `Your login at ${server} ended at ${localTime(new Date(earlier.expires_at))}.`
          : `You are not logged in at ${server}.`,
      );
    }
    const admin = readToken(folder, 'admin-token');
    const document = {
      server,
      user: token.user,
      key: token.key ?? null,
      scope: token.scope,
      expires_at: token.expires_at,
      admin_until: admin?.expires_at ?? null,
    };
    const rows = [
      ['user', token.user.email ?? token.user.id],
      ['server', server],
      ['until', localTime(new Date(token.expires_at))],
      ['key', token.key?.model ?? token.key?.aaguid ?? 'unknown model'],
      ...(admin ? [['admin until', localTime(new Date(admin.expires_at))]] : []),
    ];
    context.terminal.result(document, tableLines(rows));
  },
};
