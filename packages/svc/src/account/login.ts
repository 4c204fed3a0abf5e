import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { changeConfig } from '../files/config-file.js';
import { loginParts } from '../login/connect.js';
import type { LoginParts } from '../login/new-token.js';
import { endLogin } from '../login/revocation.js';
import { lineOfChangedReach } from '../reach/changed-reach.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { assertClock } from '../server/clock-difference.js';
import { readDiscovery } from '../server/discovery.js';
import {
  isOfSameUser,
  readAnyToken,
  TOKEN_KINDS,
  type StoredToken,
} from '../server/stored-token.js';
import { localTime, printable } from '../terminal/table.js';

const USAGE = 'svc login [--device | [--fido2] [--admin]] [--server URL]';

/** `svc login`: gets a token that is bound to a DPoP key of this machine. */
export const command: Command = {
  usage: USAGE,
  help: [
    'Opens the browser; one touch of the security key logs you in until the session ends.',
    '--device  shows a code to type in a browser of another machine; the login lasts an hour, and',
    '          what needs a touch of the key is refused',
    '--fido2   asks the key itself, with fido2-assert of libfido2',
    '--admin   adds the rights of an admin of the organization for 15 minutes',
  ],
  async run(args, context) {
    const options = parseArguments(args, { flags: ['device', 'fido2', 'admin'] }, USAGE);
    if (options.has('device') && options.has('fido2')) {
      throw usageFailure('--device and --fido2 exclude each other.', USAGE);
    }
    if (options.has('device') && options.has('admin')) {
      const message = 'A device code gives no rights of an admin.';
      throw usageFailure(`${message} Leave out --device or --admin.`, USAGE);
    }
    const { terminal } = context;
    const server = context.server();
    assertClock((await readDiscovery(server, terminal)).headers);
    const folder = context.folder(server);
    const kind = options.has('admin') ? 'admin-token' : 'token';
    const earlier = TOKEN_KINDS.map((one) => ({ kind: one, token: readAnyToken(folder, one) }));
    const parts = await loginParts({ server, folder, terminal, kind });
    const way = options.has('device') ? 'device' : options.has('fido2') ? 'fido2' : 'code';
    const token = await logIn(way, parts);
    await remember(context, server);
    for (const { kind: one, token: old } of earlier) {
      if (!old || (one !== kind && isOfSameUser(old, token))) continue;
      await endLogin(parts, old).catch(() => {}); // the old login expires by itself
    }
    const next = kind === 'token' ? await lineOfChangedReach(context) : undefined;
    report(context, server, token, next);
  },
};

async function logIn(way: 'device' | 'fido2' | 'code', parts: LoginParts): Promise<StoredToken> {
  if (way === 'device') return (await import('../login/device-login.js')).loginByDevice(parts);
  if (way === 'fido2') return (await import('../login/fido2-login.js')).loginByFido2(parts);
  return (await import('../login/code-login.js')).loginByCode(parts);
}

/** Adds the server to `config.json`. The first server is the one that commands use by default. */
function remember({ places }: CommandContext, server: string): Promise<void> {
  return changeConfig(places.config, (config) => ({
    ...config,
    server: config.server ?? server,
    servers: [...new Set([...(config.servers ?? []), server])],
  }));
}

function report(
  { terminal }: CommandContext,
  server: string,
  token: StoredToken,
  next: string | undefined,
): void {
  const { user, expires_at: expiresAt, scope } = token;
  const name = printable(user.email ?? user.id);
  terminal.result({ server, user, scope, expires_at: expiresAt }, [
    `Logged in as ${name} until ${localTime(new Date(expiresAt))}.`,
    ...(next === undefined ? [] : [next]),
  ]);
}
