import type { DataSource } from 'typeorm';
import { rows } from './rows.js';

/**
 * The tables that {@link databaseDigest} leaves out, because a refused request may change them.
 * They have the rate limits, the audit log and its seal, and the heartbeats of processes.
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
 * Returns a digest of each table that is not in {@link APART}. If two results are equal, no row has
 * changed in the meantime.
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
