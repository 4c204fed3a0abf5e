import { hash } from 'node:crypto';
import type { EntityManager, QueryRunner } from 'typeorm';
import { isStalePlan } from './faults.js';

/** One statement: its text with `$n` in place of the values, and what it is prepared as, once per connection. */
interface Statement {
  readonly digest: string;
  readonly text: string;
}

/** A template literal is one object for the life of the process, so its text is assembled once. */
const assembled = new WeakMap<TemplateStringsArray, Statement>();

function assemble(strings: TemplateStringsArray): Statement {
  const known = assembled.get(strings);
  if (known) return known;
  const text = strings.reduce((left, right, index) => `${left}$${index}${right}`);
  const statement = { digest: hash('sha256', text, 'base64url'), text };
  assembled.set(strings, statement);
  return statement;
}

/** Part of every prepared name: a new generation is prepared anew, on every connection. */
let generation = 0;

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
    const statement = assemble(strings);
    if (tx.queryRunner) return run<Row>(tx.queryRunner, statement, values);
    const runner = tx.dataSource.createQueryRunner();
    try {
      return await run<Row>(runner, statement, values);
    } finally {
      await runner.release();
    }
  };
}

async function run<Row>(
  runner: QueryRunner,
  statement: Statement,
  values: unknown[],
): Promise<Row[]> {
  try {
    return await execute(runner, statement, values);
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    generation += 1;
    if (runner.isTransactionActive) throw error; // the transaction is lost; the next one is prepared anew
    return execute(runner, statement, values);
  }
}

async function execute<Row>(
  runner: QueryRunner,
  { digest, text }: Statement,
  values: unknown[],
): Promise<Row[]> {
  // TypeORM hands its first argument to pg as it is, and pg takes a named statement there; the types know strings only.
  const named = { name: `${digest}${generation}`, text } as unknown as string;
  const result = await runner.query(named, values, true);
  return result.records as Row[];
}
