import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { StoredQuestion } from './audit-question.js';

/** A search of the audit log that an organization has saved, with its name. */
export interface SavedQuestion {
  readonly id: string;
  readonly name: string;
  readonly filters: StoredQuestion;
  readonly createdAt: Date;
}

/** A search to save, with the admin who saves it. */
export interface NewQuestion {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly filters: StoredQuestion;
  readonly createdBy: string;
}

/** Lists the saved searches of an organization, the oldest first. */
export function listQuestions(tx: EntityManager, orgId: string): Promise<SavedQuestion[]> {
  return sql<SavedQuestion>(tx)`
    SELECT id, name, filters, created_at AS "createdAt" FROM saved_questions
    WHERE org_id = ${orgId} ORDER BY created_at, id`;
}

/**
 * Locks the saved searches of an organization until the transaction ends, so that admins who save
 * at the same time cannot exceed the limit. Returns the number of saved searches.
 */
export async function lockQuestions(tx: EntityManager, orgId: string): Promise<number> {
  await sql(tx)`SELECT FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM saved_questions WHERE org_id = ${orgId}`;
  return row?.n ?? 0;
}

/** Saves a search of the audit log, and returns it with the time at which it was saved. */
export async function insertQuestion(
  tx: EntityManager,
  { id, orgId, name, filters, createdBy }: NewQuestion,
): Promise<SavedQuestion> {
  const [row] = await sql<SavedQuestion>(tx)`
    INSERT INTO saved_questions (id, org_id, name, filters, created_by)
    VALUES (${id}, ${orgId}, ${name}, ${JSON.stringify(filters)}::jsonb, ${createdBy})
    RETURNING id, name, filters, created_at AS "createdAt"`;
  if (!row) throw new Error('an INSERT returns its row');
  return row;
}

/**
 * Deletes a saved search.
 *
 * @returns its name; undefined if the organization has no such search
 */
export async function deleteQuestion(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<string | undefined> {
  const [row] = await sql<{ name: string }>(tx)`
    DELETE FROM saved_questions WHERE id = ${id} AND org_id = ${orgId} RETURNING name`;
  return row?.name;
}
