import { localTime, tableLines } from '../terminal/table.js';
import type { ParsedArguments } from '../program/arguments.js';
import type { Act, Topic } from './acts/act.js';
import { path, type AdminClient } from './acts/admin-client.js';
import { wholeNumber } from './acts/given-number.js';
import { idOf, isId } from './acts/named.js';

const TOKENS = '/api/v1/org/scim-tokens';

/** The fields of a SCIM token that this file reads in the answers of the API. */
interface ScimToken {
  readonly id: string;
  readonly description: string;
  readonly created_by_email: string | null;
  readonly last_used_at: string | null;
  readonly expires_at: string;
}

/** A new SCIM token. `token` is its secret, which the server shows only in this answer. */
interface NewToken {
  readonly id: string;
  readonly token: string;
  readonly description: string;
  readonly expires_at: string;
}

const list: Act = {
  async run(admin) {
    const document = await admin.json<{ readonly tokens: readonly ScimToken[] }>('GET', TOKENS);
    const rows = document.tokens.map((token) => [
      token.id,
      token.description,
      token.created_by_email ?? '-',
      token.last_used_at === null ? 'not yet' : localTime(new Date(token.last_used_at)),
      localTime(new Date(token.expires_at)),
    ]);
    const head = ['ID', 'DESCRIPTION', 'MADE BY', 'LAST USED', 'EXPIRES'];
    admin.terminal.result(document, tableLines([head, ...rows]));
  },
};

const create: Act = {
  takes: ['DESCRIPTION'],
  form: '[--days N]',
  names: { values: ['days'] },
  run: async (admin, options) => make(admin, options, { description: options.positionals[0] }),
};

const rotate: Act = {
  takes: ['TOKEN'],
  form: '[--days N]',
  names: { values: ['days'] },
  async run(admin, options) {
    const { id, description } = await findScimToken(admin, options.positionals[0] ?? '');
    await make(admin, options, { description, replaces: id });
    admin.terminal.warn('Both tokens are valid. When the new one is in use, end the old one:');
    admin.terminal.warn(`  svc admin scim-tokens revoke ${id}`);
  },
};

const revoke: Act = {
  takes: ['TOKEN'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { id, description } = await findScimToken(admin, options.positionals[0] ?? '');
    const effects = [
      `The token ${description} (${id}) ends at once. An identity provider that uses it can change`,
      'no member any more, until it gets a new token.',
    ];
    await admin.agree(options, effects, 'End this token?');
    await admin.request('DELETE', path`/api/v1/org/scim-tokens/${id}`);
    admin.terminal.result({ id }, [`The token ${description} has ended.`]);
  },
};

async function make(admin: AdminClient, options: ParsedArguments, body: object): Promise<void> {
  const days = wholeNumber(options, 'days');
  const json = { ...body, ...(days === undefined ? {} : { expires_in_days: days }) };
  const made = await admin.json<NewToken>('POST', TOKENS, { json });
  const end = localTime(new Date(made.expires_at));
  const { id, token, description } = made;
  admin.secret(made, token, [
    `The SCIM token ${description} (${id}) is made, and expires ${end}.`,
    'It is shown only now: give it to your identity provider.',
  ]);
}

/**
 * Finds a token by its id or description. An id that is not in the list is returned as it is, so
 * that the server refuses it.
 */
export async function findScimToken(
  admin: AdminClient,
  text: string,
): Promise<Pick<ScimToken, 'id' | 'description'>> {
  const { tokens } = await admin.json<{ readonly tokens: readonly ScimToken[] }>('GET', TOKENS);
  const candidates = tokens.map(({ id, description }) => ({ id, names: [description] }));
  const id = isId(text) ? text : idOf('SCIM token', text, candidates);
  return { id, description: tokens.find((token) => token.id === id)?.description ?? id };
}

/**
 * `svc admin scim-tokens`: manages the tokens by which the identity provider of the organization
 * uses SCIM.
 */
export const SCIM_TOKENS: Topic = new Map([
  ['list', list],
  ['create', create],
  ['rotate', rotate],
  ['revoke', revoke],
]);
