import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The id or the e-mail address by which a receiver names a person in a request. */
export type NamedPerson = { readonly id: string } | { readonly email: string };

/**
 * Removes a person of the organization from a stream, so that the stream gets no more events about
 * the person. Returns the id of the person; undefined if the person was not in the stream. The id
 * is only for the audit log, because the receiver must not learn which people exist (SSF §9.1).
 */
export async function removeSubject(
  tx: EntityManager,
  streamId: string,
  orgId: string,
  person: NamedPerson,
): Promise<string | undefined> {
  const { id, email } = columnsOf(person);
  const [removed] = await sql<{ user_id: string }>(tx)`
    INSERT INTO signal_removed_subjects (stream_id, user_id)
    SELECT ${streamId}::uuid, u.id FROM users u
    WHERE u.org_id = ${orgId} AND (u.id = ${id}::uuid OR u.email = ${email}::text)
    ON CONFLICT DO NOTHING RETURNING user_id`;
  return removed?.user_id;
}

/**
 * Adds a person again to a stream from which the person was removed. Returns the id of the person
 * for the audit log; undefined if nothing changed.
 */
export async function addSubject(
  tx: EntityManager,
  streamId: string,
  orgId: string,
  person: NamedPerson,
): Promise<string | undefined> {
  const { id, email } = columnsOf(person);
  const [added] = await sql<{ user_id: string }>(tx)`
    DELETE FROM signal_removed_subjects x USING users u
    WHERE x.stream_id = ${streamId} AND u.id = x.user_id AND u.org_id = ${orgId}
      AND (u.id = ${id}::uuid OR u.email = ${email}::text)
    RETURNING x.user_id`;
  return added?.user_id;
}

function columnsOf(person: NamedPerson): { id: string | null; email: string | null } {
  return 'id' in person ? { id: person.id, email: null } : { id: null, email: person.email };
}
