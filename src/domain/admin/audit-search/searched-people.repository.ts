import type { AuditPeople } from '#domain/audit/audit-filter.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The most users that the text of a search can name by the beginning of their names. */
export const MOST_PEOPLE = 10;

/**
 * Adds to the users of a filter the ids of the users who have one of its e-mail addresses today,
 * because events name users by id.
 */
export async function withPresentUsers(
  tx: EntityManager,
  orgId: string,
  { ids, addresses }: AuditPeople,
): Promise<AuditPeople> {
  if (addresses.length === 0) return { ids, addresses };
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM users WHERE org_id = ${orgId} AND email = ANY (${addresses}::text[])`;
  return { ids: [...ids, ...found.map(({ id }) => id)], addresses };
}

/**
 * The last character of Unicode. With this character at its end, a text sorts after all longer
 * texts that begin with the text.
 */
const LAST = '\u{10FFFF}';

/**
 * Finds members by the beginning of a name, of the last word of a name, or of an e-mail address. It
 * returns at most one id more than {@link MOST_PEOPLE}, so that the caller sees if there are too
 * many.
 */
export async function peopleNamed(
  tx: EntityManager,
  orgId: string,
  text: string,
): Promise<string[]> {
  const most = MOST_PEOPLE + 1;
  // The indexes hold the first 64 characters of a name. So a longer text finds the names whose
  // first 64 characters are the same.
  const from = fragment`lower(left(${text}::text, 64))`;
  const to = fragment`lower(left(${text}::text, 64) || ${LAST}::text)`;
  const found = await sql<{ id: string }>(tx)`
    (SELECT id FROM users WHERE org_id = ${orgId}
       AND lower(left(name, 64)) COLLATE "C" >= ${from} AND lower(left(name, 64)) COLLATE "C" < ${to}
     LIMIT ${most})
    UNION
    (SELECT id FROM users WHERE org_id = ${orgId}
       AND lower(left(substring(name FROM '[^ ]+$'), 64)) COLLATE "C" >= ${from}
       AND lower(left(substring(name FROM '[^ ]+$'), 64)) COLLATE "C" < ${to}
     LIMIT ${most})
    UNION
    (SELECT id FROM users WHERE org_id = ${orgId}
       AND email_key COLLATE "C" >= lower(${text}::text) AND email_key COLLATE "C" < lower(${text + LAST}::text)
     LIMIT ${most})
    LIMIT ${most}`;
  return found.map(({ id }) => id);
}

/**
 * Returns those of the given ids that belong to users who are members of this organization today.
 */
export async function presentMembers(
  tx: EntityManager,
  orgId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM users WHERE id = ANY (${ids}::uuid[]) AND org_id = ${orgId}`;
  return new Set(found.map(({ id }) => id));
}
