import { hash } from 'node:crypto';
import type { EntityManager, QueryRunner } from './typeorm.js';
import { systemClock } from '#platform/clock/clock.js';
import { forgetFailed } from './after-commit.js';
import { isStalePlan, noteDuration } from './faults.js';
import { preparesByName } from './pooled.js';
import { takeRecorded, type RecordedColumn } from './recorded-ids.js';
import { repeatingLostRaces } from './transaction-retry.js';

/**
 * A statement: its text with `$n` in the places of the values, and a digest of the text. The name
 * of the prepared statement begins with the digest.
 */
interface Statement {
  readonly digest: string;
  readonly text: string;
}

/**
 * The statement of each template literal. JavaScript passes the same object for a literal at each
 * call, so that the text is put together only once.
 */
const assembled = new WeakMap<TemplateStringsArray, Statement>();

function assemble(strings: TemplateStringsArray): Statement {
  const known = assembled.get(strings);
  if (known) return known;
  const text = strings.reduce((left, right, index) => `${left}$${index}${right}`);
  const statement = { digest: hash('sha256', text, 'base64url'), text };
  assembled.set(strings, statement);
  return statement;
}

/**
 * A number in the name of every prepared statement. After a migration changed the type of a column,
 * the number is raised, so that every connection prepares its statements again.
 */
let generation = 0;

/**
 * Runs one SQL statement and returns its rows, in the same shape for every command (TypeORM's own
 * `query` returns `[rows, count]` for UPDATE and DELETE). Every interpolated value becomes a bind
 * parameter:
 *
 *     const [winner] = await sql<{ id: string }>(tx)`
 *       UPDATE codes SET … WHERE id = ${id} RETURNING id`;
 *
 * @param tx the transaction, or the data source's own manager for a statement that stands alone
 * @throws QueryFailedError as PostgreSQL reports it, with the SQLSTATE in `code`
 */
export function sql<Row extends object>(
  tx: EntityManager,
): (strings: TemplateStringsArray, ...values: unknown[]) => Promise<Row[]> {
  return (strings, ...values) => {
    if (!values.some((value) => value instanceof SqlFragment)) {
      return runWithin<Row>(tx, assemble(strings), values);
    }
    const statement = withConstants(strings, values);
    if (!statement) return runFragment<Row>(tx, new SqlFragment(strings, values));
    const bound = values.filter((value) => !(value instanceof SqlFragment));
    return runWithin<Row>(tx, statement, bound);
  };
}

/**
 * The statements of templates whose fragments are all constant. `places` has the fragment in the
 * place of each value, or undefined if the value becomes a bind parameter.
 */
const withFragments = new WeakMap<
  TemplateStringsArray,
  { readonly places: readonly (SqlFragment | undefined)[]; readonly statement: Statement }
>();

/**
 * Returns the statement of a template whose fragments bind no value and are the same objects in
 * each call; undefined for any other template. The text of such a template is put together only
 * once. This saves time in every request, because a look-up of every request has such a fragment.
 */
function withConstants(
  strings: TemplateStringsArray,
  values: readonly unknown[],
): Statement | undefined {
  const places = values.map((value) => (value instanceof SqlFragment ? value : undefined));
  const known = withFragments.get(strings);
  if (known) {
    return places.every((part, n) => part === known.places[n]) ? known.statement : undefined;
  }
  if (!places.every((part) => part === undefined || isConstant(part))) return undefined;
  const text = flatten(new SqlFragment(strings, values), []);
  const statement = { digest: hash('sha256', text, 'base64url'), text };
  withFragments.set(strings, { places, statement });
  return statement;
}

/** Returns true if neither a fragment nor any fragment in it binds a value. */
function isConstant({ values }: SqlFragment): boolean {
  return values.every((value) => value instanceof SqlFragment && isConstant(value));
}

/**
 * A part of an SQL statement with the values that it binds. Several statements can use the same
 * part.
 */
export class SqlFragment {
  constructor(
    readonly strings: readonly string[],
    readonly values: readonly unknown[],
    /**
     * True if a statement with this part returns the column `recorded`, which has the ids of the
     * audit rows that it wrote. {@link sql} removes the column from the result.
     */
    readonly records: boolean = values.some(
      (value) => value instanceof SqlFragment && value.records,
    ),
  ) {}
}

/**
 * Makes a part of a statement, which {@link sql} and other fragments accept in the place of a
 * value. Every other interpolated value becomes a bind parameter:
 *
 *     const lock = mayWait ? fragment`FOR SHARE` : fragment`FOR SHARE SKIP LOCKED`;
 *     await sql(tx)`SELECT id FROM users WHERE id = ${id} ${lock}`;
 */
export function fragment(strings: TemplateStringsArray, ...values: unknown[]): SqlFragment {
  return new SqlFragment(strings, values);
}

/**
 * Joins fragments to one fragment, with a text such as ` AND ` between each of them and the next.
 */
export function joined(fragments: readonly SqlFragment[], between: string): SqlFragment {
  const strings = ['', ...fragments.slice(1).map(() => between), ''];
  return new SqlFragment(fragments.length === 0 ? [''] : strings, fragments);
}

/**
 * Joins the parts that are not undefined, with `between` as the separator. Returns undefined if
 * there is none.
 */
export function joinedParts(
  parts: readonly (SqlFragment | undefined)[],
  between: string,
): SqlFragment | undefined {
  const present = parts.filter((part) => part !== undefined);
  return present.length === 0 ? undefined : joined(present, between);
}

/**
 * Returns the text of a fragment that binds no value, so that {@link fixedSql} can run it.
 *
 * @throws Error if the fragment binds a value
 */
export function constantText(whole: SqlFragment): string {
  const values: unknown[] = [];
  const text = flatten(whole, values);
  if (values.length > 0) throw new Error('a constant statement binds a value');
  return text;
}

/** Returns bytes in the text form of a `bytea`: `\x` and hexadecimal digits. */
export function byteaText(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
}

async function runFragment<Row extends object>(
  tx: EntityManager,
  whole: SqlFragment,
): Promise<Row[]> {
  const values: unknown[] = [];
  const rows = await fixedSql<Row & RecordedColumn>(tx, flatten(whole, values), values);
  if (whole.records) takeRecorded(tx, rows);
  return rows;
}

/**
 * Returns the text of a fragment. The values of the fragment are appended to `bound`, and each `$n`
 * in the text is the position of a value in that list.
 */
function flatten({ strings, values }: SqlFragment, bound: unknown[]): string {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) {
    text += value instanceof SqlFragment ? flatten(value, bound) : `$${bound.push(value)}`;
    text += strings[index + 1] ?? '';
  }
  return text;
}

/** The statements of {@link fixedSql}, by their text. */
const fixed = new Map<string, Statement>();

/**
 * Runs one statement with a text that was put together from constants alone. There are few such
 * texts, so PostgreSQL prepares each of them once for a connection, as it does for {@link sql}.
 *
 * @param values the values of `$1`, `$2` …
 * @throws QueryFailedError as PostgreSQL reports it
 */
export function fixedSql<Row extends object>(
  tx: EntityManager,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  let statement = fixed.get(text);
  if (!statement) {
    statement = { digest: hash('sha256', text, 'base64url'), text };
    fixed.set(text, statement);
  }
  return runWithin<Row>(tx, statement, [...values]);
}

/**
 * Runs one statement whose text depends on the request, such as a search with several conditions.
 * It is not prepared, because requests can cause many different texts, and each prepared text would
 * stay in the memory of its connection.
 *
 * @param values the values of `$1`, `$2` …; what a client sent is only in these values, never in
 *   the text
 * @throws QueryFailedError as PostgreSQL reports it
 */
export async function composedSql<Row extends object>(
  tx: EntityManager,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  return onRunner(tx, (runner) => timed<Row>(runner, text, [...values]));
}

function runWithin<Row>(
  tx: EntityManager,
  statement: Statement,
  values: unknown[],
): Promise<Row[]> {
  return onRunner(tx, (runner) => run<Row>(runner, statement, values));
}

/**
 * Runs a statement on the connection of a transaction, or on any connection of the pool if the
 * statement stands alone. A statement that stands alone is repeated after a deadlock or a
 * serialization failure, which rolled it back. In a transaction, only the whole transaction can be
 * repeated (`withTransactionRetry`).
 */
async function onRunner<Answer>(
  tx: EntityManager,
  statement: (runner: QueryRunner) => Promise<Answer>,
): Promise<Answer> {
  if (tx.queryRunner) return statement(tx.queryRunner);
  return repeatingLostRaces(async () => {
    const runner = tx.dataSource.createQueryRunner();
    try {
      return await statement(runner);
    } finally {
      await runner.release();
    }
  });
}

/**
 * Returns one result for each of the `asked` inputs of a statement, in their order. Each row has in
 * `n` the number of its input, from 1 (`WITH ORDINALITY`). The result of an input without a row is
 * undefined.
 */
export function inOrder<Row extends { readonly n: number }, Answer>(
  asked: number,
  rows: readonly Row[],
  answer: (row: Row) => Answer,
): (Answer | undefined)[] {
  const answers = Array.from<Answer | undefined>({ length: asked });
  for (const row of rows) answers[row.n - 1] = answer(row);
  return answers;
}

/**
 * Returns, for each input of a statement, true if the statement returned a row for it. Each row has
 * in `n` the number of its input, from 0.
 */
export function doneOf(
  asked: readonly unknown[],
  rows: readonly { readonly n: number }[],
): boolean[] {
  const done = new Set(rows.map(({ n }) => n));
  return asked.map((_, n) => done.has(n));
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
    // A transaction in which a statement failed cannot continue. The caller may repeat the
    // transaction, whose statements are then prepared again.
    if (runner.isTransactionActive) throw error;
    return execute(runner, statement, values);
  }
}

async function execute<Row>(
  runner: QueryRunner,
  { digest, text }: Statement,
  values: unknown[],
): Promise<Row[]> {
  if (!preparesByName(runner.dataSource)) return timed<Row>(runner, text, values);
  // TypeORM passes its first argument to pg unchanged, and pg accepts a named statement there; the
  // type allows only strings.
  const named = { name: `${digest}${generation}`, text } as unknown as string;
  return timed<Row>(runner, named, values);
}

/**
 * Runs a statement. If it fails, its duration without the wait for a connection is stored for
 * {@link isTimedOut}.
 */
async function timed<Row>(runner: QueryRunner, text: string, values: unknown[]): Promise<Row[]> {
  await runner.connect();
  const start = systemClock.monotonic();
  try {
    const result = await runner.query(text, values, true);
    return result.records as Row[];
  } catch (error) {
    noteDuration(error, systemClock.monotonic() - start);
    forgetFailed(runner);
    throw error;
  }
}
