import { takeFromAgents } from '../agent/agents.js';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { STATUS, notLoggedIn } from '../program/failure.js';
import { readAnyToken, readToken } from '../server/stored-token.js';
import { localTime, tableLines } from '../terminal/table.js';
import { askServer } from './server-word.js';

const USAGE = 'svc status';

/**
 * `svc status`: shows the login of this machine from its own files, and asks the server whether it
 * still accepts the login. Without a network it shows only the facts in the files, and says so.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'It reads the files of this machine, and asks the server whether the login still stands.',
    'Without a network it says that the server did not answer.',
    `Exit status ${STATUS.notLoggedIn} means that no valid login is stored, or that the server has ended it.`,
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
    const stored = readToken(folder, 'admin-token');
    const [word, wordOfAdmin] = await Promise.all([
      askServer(server, token),
      stored && askServer(server, stored),
    ]);
    if (word.says === 'refused') {
      takeFromAgents(folder);
      const end = localTime(new Date(token.expires_at));
      throw notLoggedIn(
        `The server has ended your login at ${server}, which was to last until ${end}.`,
      );
    }
    const admin = wordOfAdmin?.says === 'refused' ? undefined : stored;
    const document = {
      server,
      user: token.user,
      key: token.key ?? null,
      scope: token.scope,
      expires_at: token.expires_at,
      admin_until: admin?.expires_at ?? null,
      server_says: word.says,
    };
    const rows = [
      ['user', token.user.email ?? token.user.id],
      ['server', server],
      ['until', localTime(new Date(token.expires_at))],
      ['key', token.key?.model ?? token.key?.aaguid ?? 'unknown model'],
      ...(admin ? [['admin until', localTime(new Date(admin.expires_at))]] : []),
      ['server says', word.says === 'unknown' ? `unknown: ${word.reason}` : 'logged in'],
    ];
    context.terminal.result(document, tableLines(rows));
  },
};
