import { Client, Query, type ClientConfig, type QueryConfig, type QueryResult } from 'pg';

/** Receives the end of a query: an error, or else the result. */
type Ending = (error: Error | null | undefined, result?: QueryResult) => void;

/** A query with the undocumented members of pg 8 that this file uses. */
type EndingQuery = Query & {
  callback: Ending;
  handleError(error: Error, connection: unknown): void;
};

/** The undocumented members of the client of pg 8 that this file uses. */
interface Inside {
  readonly connectionParameters: { query_timeout: number | false | undefined };
  readonly _queryQueue: unknown[];
  _pulseQueryQueue(): void;
}

/**
 * The client of `pg`, whose queries leave no garbage in V8's old generation. The driver's own
 * method assigns function literals to a property of each query, and its time limit too. V8
 * allocates such functions in its old generation, where each of them keeps the rows of the result,
 * and by the timer the request, until the next major collection (docs/performance/garbage.md).
 */
export class DriverClient extends Client {
  /** The milliseconds after which the wait for the answer to a query ends; 0 for no limit. */
  readonly #limit: number;

  /** @throws TypeError if pg lacks a member of {@link Inside} */
  constructor(config?: string | ClientConfig) {
    super(config);
    const { connectionParameters, _queryQueue, _pulseQueryQueue } = this.#inside;
    if (!Array.isArray(_queryQueue) || typeof _pulseQueryQueue !== 'function') {
      throw new TypeError('The client has no queue of the pg that this project locks');
    }
    this.#limit = connectionParameters.query_timeout || 0;
    connectionParameters.query_timeout = 0; // this class applies the limit
  }

  /**
   * Sends a query, and returns a promise of its result. A query with a callback or with methods of
   * its own (`Submittable`) goes to the driver as it is.
   *
   * @throws Error `Query read timeout` if the server does not answer in time
   */
  override query(...query: never[]): never;
  override query(query: string | QueryConfig, values?: unknown, callback?: unknown): unknown {
    const isText = typeof query === 'string';
    if ((!isText && 'submit' in query) || typeof values === 'function' || callback) {
      const send = super.query as (...parameters: unknown[]) => unknown;
      return send.call(this, query, values, callback);
    }
    return this.#run(query, values as unknown[] | undefined);
  }

  async #run(config: string | QueryConfig, values?: unknown[]): Promise<QueryResult> {
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult>();
    const query = new Query(config, values) as EndingQuery;
    const timer = this.#limit > 0 ? setTimeout(() => this.#giveUp(query), this.#limit) : undefined;
    const end: Ending = (error, result) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(result as QueryResult);
    };
    query.callback = end;
    super.query(query);
    try {
      return await promise;
    } catch (error) {
      // The stack then leads to the caller, and not to the socket that received the error.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    }
  }

  /** Ends the wait for the answer to a query, as the driver itself does. */
  #giveUp(query: EndingQuery): void {
    const error = new Error('Query read timeout');
    const { callback } = query;
    query.callback = nothing;
    process.nextTick(() => query.handleError(error, this.connection));
    callback(error);
    const { _queryQueue: queue } = this.#inside;
    const place = queue.indexOf(query);
    if (place !== -1) queue.splice(place, 1); // a query that was not sent yet is never sent
    this.#inside._pulseQueryQueue();
  }

  get #inside(): Inside {
    return this as unknown as Inside;
  }
}

function nothing(): void {
  // The wait for the answer has ended.
}
