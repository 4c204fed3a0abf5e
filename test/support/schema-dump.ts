import type { DataSource } from 'typeorm';
import { rows } from './rows.js';

/**
 * Lists everything that migrations make in a database, such as columns and constraints. Each has
 * one line, so that the schemas of two databases can be compared.
 */
export async function schemaDump(dataSource: DataSource): Promise<string[]> {
  const found = await rows<{ line: string }>(
    dataSource,
    `WITH own AS (SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace)
     SELECT format('column %s.%s %s %s %s %s', o.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
                   a.attnotnull, pg_get_expr(d.adbin, d.adrelid)) AS line
     FROM own o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0
     LEFT JOIN pg_attrdef d ON d.adrelid = o.oid AND d.adnum = a.attnum
     WHERE o.relkind IN ('r', 'p', 'v')
     UNION ALL SELECT format('constraint %s.%s %s %s', o.relname, c.conname, pg_get_constraintdef(c.oid), c.convalidated)
     FROM own o JOIN pg_constraint c ON c.conrelid = o.oid
     UNION ALL SELECT format('index %s %s', pg_get_indexdef(i.indexrelid), i.indisvalid)
     FROM own o JOIN pg_index i ON i.indrelid = o.oid
     UNION ALL SELECT format('trigger %s %s', o.relname, pg_get_triggerdef(t.oid))
     FROM own o JOIN pg_trigger t ON t.tgrelid = o.oid AND NOT t.tgisinternal
     UNION ALL SELECT format('view %s %s', o.relname, pg_get_viewdef(o.oid)) FROM own o WHERE o.relkind = 'v'
     UNION ALL SELECT format('sequence %s', o.relname) FROM own o WHERE o.relkind = 'S'
     UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
     ORDER BY 1`,
  );
  return found.map(({ line }) => line);
}
