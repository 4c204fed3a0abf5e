import { localTime, tableLines } from '../terminal/table.js';
import type { ParsedArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import type { Act, Topic } from './acts/act.js';
import { path, type AdminClient } from './acts/admin-client.js';
import { wholeNumber } from './acts/given-number.js';
import { idOf, isId } from './acts/named.js';
import { findScimToken } from './scim-tokens.js';

const TOKENS = '/api/v1/org/api-tokens';

/** The fields of an API token that this file reads in the answers of the API. */
interface ApiToken {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly last_used_at: string | null;
  readonly expires_at: string;
}

/**
 * The API tokens of the organization. `ended_with_maker` has those that ended because the admin who
 * made them lost access to the organization.
 */
interface ApiTokens {
  readonly tokens: readonly ApiToken[];
  readonly ended_with_maker: readonly ApiToken[];
}

/**
 * Returns the cells of a token in the table. `end` is the last cell: when or why the token ends.
 */
function rowOf(token: ApiToken, end: string): string[] {
  const used = token.last_used_at === null ? 'not yet' : localTime(new Date(token.last_used_at));
  return [token.id, token.name, token.scopes.join(' '), used, end];
}

const list: Act = {
  async run(admin) {
    const document = await admin.json<ApiTokens>('GET', TOKENS);
    const rows = document.tokens.map((token) =>
      rowOf(token, localTime(new Date(token.expires_at))),
    );
    const ended = document.ended_with_maker.map((token) => rowOf(token, 'ended with its maker'));
    const head = ['ID', 'NAME', 'SCOPES', 'LAST USED', 'EXPIRES'];
    admin.terminal.result(document, tableLines([head, ...rows, ...ended]));
  },
};

const create: Act = {
  takes: ['NAME'],
  form: '--scope SCOPE... [--days N] [--cidr NETWORK]... [--scim-token TOKEN]...',
  names: { values: ['scope', 'days', 'cidr', 'scim-token'] },
  async run(admin, options) {
    const [name] = options.positionals;
    const scopes = options.all('scope');
    if (scopes.length === 0) {
      throw usageFailure('No --scope is given.', 'svc admin api-tokens create NAME --scope SCOPE');
    }
    const days = wholeNumber(options, 'days');
    const ids: string[] = [];
    for (const text of options.all('scim-token')) ids.push((await findScimToken(admin, text)).id);
    await make(admin, TOKENS, {
      name,
      scopes,
      ...(days === undefined ? {} : { expires_in_days: days }),
      ...(options.all('cidr').length > 0 ? { allowed_cidrs: options.all('cidr') } : {}),
      ...(ids.length > 0 ? { scim_token_ids: ids } : {}),
    });
  },
};

const rotate: Act = {
  takes: ['TOKEN'],
  form: '[--days N] [--overlap HOURS]',
  names: { values: ['days', 'overlap'] },
  async run(admin, options) {
    const days = wholeNumber(options, 'days');
    const hours = wholeNumber(options, 'overlap');
    const { id } = await find(admin, options);
    await make(admin, path`/api/v1/org/api-tokens/${id}/rotate`, {
      ...(days === undefined ? {} : { expires_in_days: days }),
      ...(hours === undefined ? {} : { overlap_hours: hours }),
    });
  },
};

const revoke: Act = {
  takes: ['TOKEN'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { id, name } = await find(admin, options);
    const effects = [
      `The token ${name} (${id}) ends at once: the program that uses it is refused.`,
    ];
    await admin.agree(options, effects, 'End this token?');
    await admin.request('DELETE', path`/api/v1/org/api-tokens/${id}`);
    admin.terminal.result({ id }, [`The token ${name} has ended.`]);
  },
};

async function make(admin: AdminClient, to: string, json: object): Promise<void> {
  const made = await admin.json<ApiToken & { readonly token: string }>('POST', to, { json });
  const end = localTime(new Date(made.expires_at));
  admin.secret(made, made.token, [
    `The API token ${made.name} (${made.id}) is made, and expires ${end}.`,
    'It is shown only now: give it to the program.',
  ]);
}

/**
 * Finds a token by its id or name. An id that is not in the list is returned as it is, so that the
 * server refuses it.
 */
async function find(
  admin: AdminClient,
  { positionals: [text = ''] }: ParsedArguments,
): Promise<Pick<ApiToken, 'id' | 'name'>> {
  const { tokens, ended_with_maker: ended } = await admin.json<ApiTokens>('GET', TOKENS);
  const all = [...tokens, ...ended];
  const candidates = all.map(({ id, name }) => ({ id, names: [name] }));
  const id = isId(text) ? text : idOf('API token', text, candidates);
  return { id, name: all.find((token) => token.id === id)?.name ?? id };
}

/** `svc admin api-tokens`: manages the tokens by which programs of the organization use the API. */
export const API_TOKENS: Topic = new Map([
  ['list', list],
  ['create', create],
  ['rotate', rotate],
  ['revoke', revoke],
]);
