import type { DataSource } from 'typeorm';
import { rows } from './rows.js';

/**
 * The tables that change even if a request is refused: rate limits, the record of the refusal and
 * its seal, and the heartbeats of the process.
 */
const APART = new Set([
  'rate_limits',
  'audit_events',
  'audit_trees',
  'audit_leaves',
  'audit_nodes',
  'audit_checkpoints',
  'audit_seal',
  'replicas',
]);

/**
 * Returns a digest of each table except those of {@link APART}, so that a test notices the change
 * of any row.
 */
export async function databaseDigest(dataSource: DataSource): Promise<Record<string, string>> {
  const tables = await rows<{ name: string }>(
    dataSource,
    `SELECT relname AS name FROM pg_class
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace ORDER BY 1`,
  );
  const digests: Record<string, string> = {};
  for (const { name } of tables.filter((table) => !APART.has(table.name))) {
    const [row] = await rows<{ digest: string }>(
      dataSource,
      `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS digest FROM "${name}" t`,
    );
    digests[name] = row?.digest ?? '';
  }
  return digests;
}
