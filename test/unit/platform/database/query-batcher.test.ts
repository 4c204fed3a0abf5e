import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as immediate, setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { QueryBatcher } from '../../../../src/platform/database/statements/query-batcher.js';
import { TestClock } from '../../../support/test-clock.js';

/** A database in which a statement runs until the test ends it. */
class SlowDatabase {
  readonly statements: (readonly string[])[] = [];
  readonly #ends: PromiseWithResolvers<void>[] = [];

  readonly statement = async (keys: readonly string[]): Promise<string[]> => {
    const end = Promise.withResolvers<void>();
    this.statements.push([...keys]);
    this.#ends.push(end);
    await end.promise;
    return keys.map((key) => `${key}!`);
  };

  async end(statement: number): Promise<void> {
    this.#ends[statement]?.resolve();
    await nextTurn();
  }
}

/** Waits longer than the turns for which a statement gathers keys. */
async function nextTurn(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await immediate();
}

describe('concurrent queries of requests', () => {
  it('share one statement within a turn of the event loop, and each has its own result', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement);
    const answers = Promise.all(['a', 'b', 'a'].map((key) => gather.load(key)));
    await nextTurn();
    expect(database.statements).toEqual([['a', 'b', 'a']]);
    await database.end(0);
    expect(await answers).toEqual(['a!', 'b!', 'a!']);
  });

  it('share one statement with those that arrive in three more turns, if several have come', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement);
    const answers = ['a', 'b'].map((key) => gather.load(key));
    for (const key of ['c', 'd', 'e']) {
      await immediate();
      answers.push(gather.load(key));
    }
    expect(database.statements).toEqual([]);
    await immediate();
    expect(database.statements).toEqual([['a', 'b', 'c', 'd', 'e']]);
    await database.end(0);
    expect(await Promise.all(answers)).toEqual(['a!', 'b!', 'c!', 'd!', 'e!']);
  });

  it('wait for one turn only, if one comes alone', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement);
    const answer = gather.load('a');
    await immediate();
    expect(database.statements).toEqual([['a']]);
    await database.end(0);
    expect(await answer).toBe('a!');
  });

  it('wait for a statement that is not overdue, and share the next one', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement, new TestClock());
    const first = gather.load('a');
    await immediate();
    const others = ['b', 'c'].map((key) => gather.load(key));
    await immediate();
    expect(database.statements).toEqual([['a']]);
    await database.end(0);
    expect(await first).toBe('a!');
    expect(database.statements).toEqual([['a'], ['b', 'c']]);
    await database.end(1);
    expect(await Promise.all(others)).toEqual(['b!', 'c!']);
  });

  it('run in the context of the request that came first', async () => {
    const request = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const first = Promise.withResolvers<void>();
    const gather = new QueryBatcher(async (keys: readonly string[]) => {
      contexts.push(request.getStore());
      if (keys.includes('a')) await first.promise;
      return keys;
    });
    const load = (key: string) => request.run(`request ${key}`, () => gather.load(key));
    const a = load('a');
    await immediate();
    const others = [load('b'), load('c')];
    await immediate();
    first.resolve();
    await Promise.all([a, ...others]);
    expect(contexts).toEqual(['request a', 'request b']);
  });

  it('begin a second statement beside one that is overdue', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement);
    const first = gather.load('a');
    await immediate();
    const second = gather.load('b');
    await expect.poll(() => database.statements).toEqual([['a'], ['b']]);
    await database.end(1);
    expect(await second).toBe('b!');
    await database.end(0);
    expect(await first).toBe('a!');
  });

  it('wait while two statements run, and then share one that begins after they were queued', async () => {
    const database = new SlowDatabase();
    const gather = new QueryBatcher(database.statement);
    const answers: Promise<string>[] = [];
    for (const key of ['a', 'b', 'c', 'd']) {
      answers.push(gather.load(key));
      await delay(12); // longer than the time after which a statement is overdue
    }
    const first = [['a'], ['b']];
    expect(database.statements).toEqual(first);
    answers.push(gather.load('a')); // a repeated key: results are not cached
    await database.end(1);
    expect(database.statements).toEqual([...first, ['c', 'd', 'a']]);
    for (const statement of [0, 2]) await database.end(statement);
    expect(await Promise.all(answers)).toEqual(['a!', 'b!', 'c!', 'd!', 'a!']);
  });

  it('share at most 64 keys in one statement, and the rest wait for the next', async () => {
    const sizes: number[] = [];
    const gather = new QueryBatcher((keys: readonly number[]) => {
      sizes.push(keys.length);
      return Promise.resolve(keys);
    });
    const keys = Array.from({ length: 150 }, (_, key) => key);
    expect(await Promise.all(keys.map((key) => gather.load(key)))).toEqual(keys);
    expect(sizes).toEqual([64, 64, 22]);
  });

  it('fail alone when the statement fails for one key', async () => {
    const statement = (keys: readonly string[]) =>
      keys.includes('bad') ? Promise.reject(new Error('bad key')) : Promise.resolve(keys);
    const gather = new QueryBatcher(statement);
    const settled = await Promise.allSettled(['a', 'bad', 'b'].map((key) => gather.load(key)));
    expect(settled).toMatchObject([
      { value: 'a' },
      { reason: { message: 'bad key' } },
      { value: 'b' },
    ]);
  });

  it('fail at once together when the database is away, and the next query tries again', async () => {
    let statements = 0;
    const gather = new QueryBatcher((keys: readonly string[]) => {
      statements += 1;
      return statements === 1
        ? Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
        : Promise.resolve(keys);
    });
    const settled = await Promise.allSettled(['a', 'b'].map((key) => gather.load(key)));
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await gather.load('c')).toBe('c');
    expect(statements).toBe(2);
  });
});
