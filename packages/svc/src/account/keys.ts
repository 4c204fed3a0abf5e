import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { openAddress } from '../login/browser.js';
import { parseArguments, type ParsedArguments } from '../program/arguments.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';
import { localTime, tableLines } from '../terminal/table.js';

const USAGE = [
  'svc keys',
  'svc keys add',
  'svc keys rename ID NAME',
  'svc keys remove ID [--yes]',
].join('\n');

/** A security key in the answer of `GET /v1/keys`. */
interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly model: string | null;
  readonly last_used_at: string | null;
  readonly current: boolean;
}

/**
 * `svc keys`: lists, renames and removes the user's security keys. To add a key, it opens the
 * browser.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'ID may be the first characters of an id. To add or remove a key, touch a registered one.',
  ],
  async run(args, context) {
    const options = parseArguments(args, { flags: ['yes'], positionals: 3 }, USAGE);
    const [act = 'list', ...rest] = options.positionals;
    const acts: Record<string, () => Promise<void>> = {
      list: () => list(context, rest),
      add: () => add(context, rest),
      rename: () => rename(context, rest),
      remove: () => remove(context, rest, options),
    };
    const chosen = Object.hasOwn(acts, act) ? acts[act] : undefined;
    if (!chosen) throw usageFailure(`svc keys does not know "${act}".`, USAGE);
    await chosen();
  },
};

async function list(context: CommandContext, rest: readonly string[]): Promise<void> {
  expectArguments(rest, 0);
  const keys = await readKeys(context);
  const rows = keys.map(({ id, name, model, last_used_at: used, current }) => [
    id,
    name,
    model ?? 'unknown model',
    used === null ? 'never used' : localTime(new Date(used)),
    current ? 'this login' : '',
  ]);
  context.terminal.result(
    { keys },
    tableLines([['ID', 'NAME', 'MODEL', 'LAST USED', ''], ...rows]),
  );
}

async function add(context: CommandContext, rest: readonly string[]): Promise<void> {
  expectArguments(rest, 0);
  const url = `${context.server()}/account/keys`;
  openAddress(url);
  context.terminal.result({ url }, [`Add the key in the browser: ${url}`]);
}

async function rename(context: CommandContext, rest: readonly string[]): Promise<void> {
  expectArguments(rest, 2);
  const [id = '', name = ''] = rest;
  const key = await findKey(context, id);
  const client = await context.client();
  await client.json('PATCH', `/v1/keys/${key.id}`, { json: { name } });
  context.terminal.result({ id: key.id, name }, [`Renamed to ${name}.`]);
}

async function remove(
  context: CommandContext,
  rest: readonly string[],
  options: ParsedArguments,
): Promise<void> {
  expectArguments(rest, 1);
  const key = await findKey(context, rest[0] ?? '');
  const question = `Remove ${key.name}? Every login and certificate that came from it ends.`;
  if (!options.has('yes') && !(await context.terminal.confirm(question))) {
    throw new CliFailure('Nothing was removed.', 'Answer y to remove the key.');
  }
  const client = await context.client();
  const answer = await client.json<{ sessions_revoked?: number }>('DELETE', `/v1/keys/${key.id}`);
  context.terminal.result({ id: key.id, ...answer }, [
    `Removed ${key.name}. Sessions ended: ${answer.sessions_revoked ?? 0}.`,
  ]);
}

async function readKeys(context: CommandContext): Promise<readonly KeyRow[]> {
  const client = await context.client();
  return (await client.get<{ keys: readonly KeyRow[] }>('/v1/keys')).keys;
}

/**
 * Finds the security key with an id that begins with `start`.
 * @throws CliFailure if there is no such key, or if there are several
 */
async function findKey(context: CommandContext, start: string): Promise<KeyRow> {
  const found = (await readKeys(context)).filter(({ id }) => start !== '' && id.startsWith(start));
  const [key] = found;
  if (key && found.length === 1) return key;
  const message = key ? `Several keys begin with ${start}.` : `You have no key ${start}.`;
  throw new CliFailure(message, 'Run svc keys for the list.', STATUS.failed);
}

function expectArguments(rest: readonly string[], count: number): void {
  if (rest.length !== count) throw usageFailure('The arguments do not fit.', USAGE);
}
