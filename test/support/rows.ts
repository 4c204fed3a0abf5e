import type { DataSource } from 'typeorm';

/** Returns the rows of a query on the database of a test. */
export async function rows<Row = Record<string, unknown>>(
  dataSource: DataSource,
  query: string,
  parameters: unknown[] = [],
): Promise<Row[]> {
  return dataSource.query<Row[]>(query, parameters);
}

/** Counts the rows of a query. `fromWhere` is its text after `SELECT count(*) FROM`. */
export async function count(
  dataSource: DataSource,
  fromWhere: string,
  parameters: unknown[] = [],
): Promise<number> {
  const [row] = await rows<{ n: number }>(
    dataSource,
    `SELECT count(*)::int AS n FROM ${fromWhere}`,
    parameters,
  );
  return row?.n ?? 0;
}

/** Returns the audit events about a user, the oldest first. */
export function auditOf(
  dataSource: DataSource,
  email: string,
): Promise<{ type: string; details: Record<string, unknown>; ip: string }[]> {
  return rows(
    dataSource,
    `SELECT e.type, e.details, host(e.ip) AS ip FROM audit_events e JOIN users u ON u.id = e.subject_id
     WHERE u.email = $1 ORDER BY e.id`,
    [email],
  );
}
