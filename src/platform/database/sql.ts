import type { EntityManager, QueryRunner } from 'typeorm';

/** One statement: its text with `$n` in place of the values. */
interface Statement {
  readonly text: string;
}

/** A template literal is one object for the life of the process, so its text is assembled once. */
const assembled = new WeakMap<TemplateStringsArray, Statement>();

function assemble(strings: TemplateStringsArray): Statement {
  const known = assembled.get(strings);
  if (known) return known;
  const text = strings.reduce((left, right, index) => `${left}$${index}${right}`);
  const statement = { text };
  assembled.set(strings, statement);
  return statement;
}

/**
 * Runs one SQL statement and returns its rows, in one shape whatever the command (TypeORM's own `query` answers
 * `[rows, count]` to UPDATE and DELETE). Every interpolated value becomes a bind parameter:
 *
 *     const [winner] = await sql<{ id: string }>(tx)`UPDATE codes SET … WHERE id = ${id} RETURNING id`;
 *
 * @param tx the transaction, or the data source's own manager for a statement that stands alone
 * @throws QueryFailedError as PostgreSQL reports it, with the SQLSTATE in `code`
 */
export function sql<Row extends object>(
  tx: EntityManager,
): (strings: TemplateStringsArray, ...values: unknown[]) => Promise<Row[]> {
  return async (strings, ...values) => {
    const { text } = assemble(strings);
    if (tx.queryRunner) return run<Row>(tx.queryRunner, text, values);
    const runner = tx.dataSource.createQueryRunner();
    try {
      return await run<Row>(runner, text, values);
    } finally {
      await runner.release();
    }
  };
}

async function run<Row>(runner: QueryRunner, text: string, values: unknown[]): Promise<Row[]> {
  const result = await runner.query(text, values, true);
  return result.records as Row[];
}
