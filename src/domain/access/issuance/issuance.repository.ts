import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { noteRecorded } from '#platform/database/statements/recorded-ids.js';
import { constantText, fixedSql } from '#platform/database/statements/sql.js';
import {
  issuanceStatement,
  type Denial,
  type IssuanceSql,
} from './issuance-statement.repository.js';
import type { Conditions } from '../reach/decision.js';
import type { RowLocks } from './lock-order.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The result of a request: the issued credential, or the reason why none was issued. */
export type Outcome<Issued> = { readonly issued: Issued } | Denied;

/**
 * The reason why no credential was issued. For `condition_unmet`, `conditions` has all conditions
 * of the target, also those that are met.
 */
export interface Denied {
  readonly denial: Denial;
  readonly conditions?: Conditions;
}

/**
 * A row that the issuance statement returns: the position `n` of the request in the batch, its
 * denial, and the columns of the kind of credential.
 */
export interface OutcomeRow {
  readonly n: number;
  readonly denial: Denial | null;
  readonly conditions?: Conditions | null;
}

/** The outcome of a request with the row from which it was read; undefined without a row. */
export interface Decided<Issued, Row> {
  readonly outcome: Outcome<Issued>;
  readonly row?: Row;
}

/**
 * The position `n` of a request in its batch, and the ids that the request gives to its audit
 * events.
 */
interface AskedColumns {
  readonly n: number;
  readonly audit_id?: string;
  readonly exchange_id?: string | undefined;
}

/**
 * A kind of credential, such as SSH certificates: its SQL, and the functions that write a request
 * and read a result.
 */
export class IssuanceKind<Request, Issued, Row extends OutcomeRow = OutcomeRow> {
  readonly #statements: Readonly<Record<RowLocks, string>>;

  constructor(
    kind: IssuanceSql,
    /** Returns a request as an object with the columns of this kind of credential. */
    private readonly columnsOf: (request: Request) => object,
    private readonly read: (row: Row, request: Request) => Issued,
  ) {
    this.#statements = {
      wait: constantText(issuanceStatement(kind, 'wait')),
      skip: constantText(issuanceStatement(kind, 'skip')),
    };
  }

  /**
   * Decides several requests without waiting for a lock. If another transaction has locked a row
   * that a request depends on, this method denies the request. The caller can then try {@link
   * issue}, which waits. The results are in the order of the requests.
   */
  async issueUnlocked(tx: EntityManager, requests: readonly Request[]): Promise<Outcome<Issued>[]> {
    const decided = await this.decideUnlocked(tx, requests);
    return decided.map(({ outcome }) => outcome);
  }

  /** Does the same as {@link issueUnlocked}, and also returns the rows of the outcomes. */
  decideUnlocked(tx: EntityManager, requests: readonly Request[]): Promise<Decided<Issued, Row>[]> {
    return this.#run(tx, requests, 'skip');
  }

  /**
   * Decides one request, and returns the credential or the denial. The statement waits for the
   * locks of other transactions, so that its decision is final.
   */
  async issue(tx: EntityManager, request: Request): Promise<Outcome<Issued>> {
    const run = async (within: EntityManager) =>
      (await this.#run(within, [request], 'wait'))[0]?.outcome ?? GONE;
    const outcome = await run(tx);
    if (!isOutdated(outcome)) return outcome;
    // A rule changed while the statement ran (`changed`), so the request is decided again, twice if
    // needed. The first statement in the transaction keeps its lock on the version of the access
    // rules until the transaction ends. So no rule changes before the second statement, and the
    // decision of the second one is final.
    return inTransaction(tx, async (within) => {
      const first = await run(within);
      return isOutdated(first) ? run(within) : first;
    });
  }

  async #run(
    tx: EntityManager,
    requests: readonly Request[],
    locks: RowLocks,
  ): Promise<Decided<Issued, Row>[]> {
    const asked = requests.map((request, n): AskedColumns => ({ n, ...this.columnsOf(request) }));
    const rows = await fixedSql<Row>(tx, this.#statements[locks], [JSON.stringify(asked)]);
    const outcomes = requests.map((): Decided<Issued, Row> => ({ outcome: GONE }));
    const recorded: string[] = [];
    for (const row of rows) {
      const { n, denial, conditions } = row;
      if (denial !== null) {
        outcomes[n] = { outcome: conditions ? { denial, conditions } : { denial }, row };
        continue;
      }
      outcomes[n] = { outcome: { issued: this.read(row, requests[n] as Request) }, row };
      const { audit_id, exchange_id } = asked[n] as AskedColumns;
      if (audit_id !== undefined) recorded.push(audit_id);
      if (exchange_id !== undefined) recorded.push(exchange_id);
    }
    noteRecorded(tx, recorded);
    return outcomes;
  }
}

const GONE = { denial: 'gone' } as const;

function isOutdated(outcome: Outcome<unknown>): boolean {
  return 'denial' in outcome && outcome.denial === 'changed';
}

/**
 * Runs `work` in the open transaction of the manager. If none is open, `work` gets a new
 * transaction.
 */
function inTransaction<Result>(
  tx: EntityManager,
  work: (within: EntityManager) => Promise<Result>,
): Promise<Result> {
  return tx.queryRunner?.isTransactionActive === true ? work(tx) : withTransactionRetry(tx, work);
}

/**
 * Issues credentials of every kind. Requests that arrive at the same time share one statement and
 * one commit, which costs the database less.
 */
@Injectable()
export class Issuance {
  readonly #batchers = new Map<unknown, unknown>();

  constructor(private readonly manager: EntityManager) {}

  /**
   * Decides one request, and returns the credential or the denial. The request first runs in a
   * batch, which waits for no lock. If the batch denies the request, it runs again alone, waits for
   * the locks, and gets its final decision. So a locked row delays only the requests that need this
   * row.
   */
  async issue<Request, Issued, Row extends OutcomeRow>(
    kind: IssuanceKind<Request, Issued, Row>,
    request: Request,
  ): Promise<Outcome<Issued>> {
    const outcome = await this.issueUnlocked(kind, request);
    if ('issued' in outcome) return outcome;
    return kind.issue(this.manager, request);
  }

  /**
   * Decides one request in a batch, which waits for no lock. A denial is not final, because its
   * cause may be a row that another transaction has locked. {@link issue} may still issue the
   * credential.
   */
  async issueUnlocked<Request, Issued, Row extends OutcomeRow>(
    kind: IssuanceKind<Request, Issued, Row>,
    request: Request,
  ): Promise<Outcome<Issued>> {
    return (await this.decideUnlocked(kind, request)).outcome;
  }

  /** Does the same as {@link issueUnlocked}, and also returns the row of the outcome. */
  decideUnlocked<Request, Issued, Row extends OutcomeRow>(
    kind: IssuanceKind<Request, Issued, Row>,
    request: Request,
  ): Promise<Decided<Issued, Row>> {
    return this.#batcherOf(kind).load(request);
  }

  #batcherOf<Request, Issued, Row extends OutcomeRow>(
    kind: IssuanceKind<Request, Issued, Row>,
  ): QueryBatcher<Request, Decided<Issued, Row>> {
    const known = this.#batchers.get(kind);
    if (known) return known as QueryBatcher<Request, Decided<Issued, Row>>;
    const batcher = new QueryBatcher((requests: readonly Request[]) =>
      kind.decideUnlocked(this.manager, requests),
    );
    this.#batchers.set(kind, batcher);
    return batcher;
  }
}
