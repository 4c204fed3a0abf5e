import {
  aaguidsOfModel,
  FIPS_AAGUIDS,
  KNOWN_AAGUIDS,
} from '#domain/keys/authenticators/authenticator-models.js';
import { IS_SHARED } from '#domain/directory/users.repository.js';
import { constantText } from '#platform/database/statements/sql.js';
import { UNKNOWN_MODEL, type MemberQuery } from './member-search.js';

/**
 * The most members that a search finds in each of its three ways: by e-mail address, by name, and
 * by the last word of the name. If there are more, the user must type a longer text.
 */
export const MOST_FOUND = 1000;

/**
 * Adds a value to the parameters of a statement, and returns the placeholder, such as `$2`, that
 * stands for the value in the text.
 */
export type Bind = (value: unknown) => string;

/**
 * Returns the SQL conditions of the filters about a member `u` of the organization `$1`. The values
 * are constants in the SQL text and not parameters, so that PostgreSQL can use the partial indexes.
 */
export function conditionsOnMember({
  role,
  status,
  tie,
  keys,
}: Pick<MemberQuery, 'role' | 'status' | 'tie' | 'keys'>): string[] {
  const conditions: string[] = [];
  if (role !== undefined)
    conditions.push(role === 'admin' ? 'u.is_org_admin' : 'NOT u.is_org_admin');
  if (status !== undefined) conditions.push(status === 'active' ? 'u.active' : 'NOT u.active');
  if (tie !== undefined) conditions.push(TIED[tie]);
  if (keys !== undefined) conditions.push(KEYS[keys]);
  return conditions;
}

/** Returns the SQL conditions of the filters about the model of a key `k`. */
export function conditionsOnKey(
  { model, fips }: Pick<MemberQuery, 'model' | 'fips'>,
  bind: Bind,
): string[] {
  const conditions: string[] = [];
  if (model === UNKNOWN_MODEL) conditions.push(isNotOf(bind(KNOWN_AAGUIDS)));
  else if (model !== undefined) conditions.push(isOf(bind(aaguidsOfModel(model))));
  if (fips !== undefined) {
    const models = bind(FIPS_AAGUIDS);
    conditions.push(fips ? isOf(models) : isNotOf(models));
  }
  return conditions;
}

/** The parts of a statement that finds members `u` of the organization `$1` by a text. */
export interface SearchParts {
  /** The SQL text that stands before `SELECT`. */
  readonly before: string;
  readonly conditions: readonly string[];
  /**
   * The SQL expression that is false if more than {@link MOST_FOUND} members may match the text, so
   * that some are not found.
   */
  readonly isComplete: string;
}

/**
 * Returns the parts of a statement that searches by the text `q`. Without a text, the parts find
 * every member.
 */
export function partsOfSearch({ q }: Pick<MemberQuery, 'q'>, bind: Bind): SearchParts {
  if (q === undefined) return { before: '', conditions: [], isComplete: 'true' };
  return {
    before: `WITH found AS MATERIALIZED (${foundBy(q, bind)})`,
    conditions: ['u.id IN (SELECT f.id FROM found f)'],
    isComplete: `(SELECT count(*) FROM found) < ${MOST_FOUND}`,
  };
}

const KEYS = {
  none: 'u.key_count = 0',
  one: 'u.key_count = 1',
  several: 'u.key_count > 1',
} as const;

const tied = (kind: 'twin' | 'link') =>
  `u.id IN (SELECT t.user_id FROM record_ties t WHERE t.org_id = $1 AND t.kind = '${kind}'
            UNION SELECT t.record_id FROM record_ties t WHERE t.org_id = $1 AND t.kind = '${kind}')`;

const TIED = {
  twin: tied('twin'),
  linked: tied('link'),
  taken_over: 'u.taken_over_at IS NOT NULL',
  no_address: `(u.email IS NULL OR EXISTS (SELECT FROM record_addresses a
    WHERE a.user_id = u.id AND (a.withheld AND a.rank IS NOT NULL OR ${constantText(IS_SHARED)})))`,
} as const;

const isOf = (models: string) => `k.aaguid = ANY (${models}::uuid[])`;
/**
 * Returns the SQL condition that the model of a key is none of some models. It is not written as
 * `<> ALL`, because the planner would then multiply the frequencies of the models, as if one key
 * had several models. For `= ANY` the planner adds the frequencies up.
 */
const isNotOf = (models: string) => `(k.aaguid = ANY (${models}::uuid[])) IS NOT TRUE`;

/**
 * The last character of Unicode. A text with this character at its end sorts after all other texts
 * that begin with the same text.
 */
const LAST = '\u{10FFFF}';

/**
 * Returns the part of the statement that finds the members whose e-mail address, name, or last word
 * of the name begins with a text. It searches in these three ways, one after the other. Each way
 * reads at most {@link MOST_FOUND} entries of an index.
 */
function foundBy(q: string, bind: Bind): string {
  const text = bind(q);
  const last = bind(LAST);
  const name = `lower(left(${text}, 64))`;
  const ways = [
    ['u.email_key COLLATE "C"', `lower(${text} COLLATE "C")`],
    ['lower(left(u.name, 64)) COLLATE "C"', name],
    [`lower(left(substring(u.name FROM '[^ ]+$'), 64)) COLLATE "C"`, name],
  ] as const;
  const ranges = ways.map(
    ([value, from]) =>
      `(SELECT u.id FROM users u WHERE u.org_id = $1 AND ${value} >= ${from} AND ${value} < ${from} || ${last}
        ORDER BY ${value} LIMIT ${MOST_FOUND})`,
  );
  return ranges.join(' UNION ');
}
