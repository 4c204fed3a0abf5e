import { Client, Query, type ClientConfig, type QueryConfig, type QueryResult } from 'pg';

/** Receives the end of a query: an error, or else the result. */
type Ending = (error: Error | null | undefined, result?: QueryResult) => void;

/** A query with the undocumented members of pg 8 that this file uses. */
type EndingQuery = Query & {
  callback: Ending;
  handleError(error: Error, connection: unknown): void;
};

/** A query with a time limit of its own in milliseconds, which the types of pg lack. */
type LimitedConfig = QueryConfig & { readonly query_timeout?: number };

/** The parameters of a client, with the time limit of its queries in milliseconds. */
interface ConnectionParameters {
  query_timeout: number | false | undefined;
}

/** The name of the driver's method that sends the next query of the queue. */
const PULSE = '_pulseQueryQueue';

/**
 * The client of `pg`, whose queries with a promise reach V8's old generation no more. The driver's
 * own method assigns function literals to a property of each query, also for its time limit. V8
 * allocates such functions in its old generation, where each of them keeps the rows of the result,
 * and by the timer the request, until the next major collection (docs/performance/garbage.md).
 */
export class DriverClient extends Client {
  /** @throws TypeError if pg lacks a member that this class uses, or for a client that pipelines */
  constructor(config?: string | ClientConfig) {
    super(config);
    const isKnown = Array.isArray(this.#queue) && typeof this.#parameters === 'object';
    if (!isKnown || typeof Reflect.get(this, PULSE) !== 'function') {
      throw new TypeError('The client has no queue of the pg that this project locks');
    }
    if (Reflect.get(this, 'pipeline') === true)
      throw new TypeError('This client does not pipeline');
  }

  /**
   * Sends a query, and returns a promise of its result. A query with a callback, or with methods of
   * its own (`Submittable`), goes to the driver's own method.
   *
   * @throws Error `Query read timeout` if the server does not answer in time
   */
  override query(...query: never[]): never;
  override query(
    query: string | (QueryConfig & { readonly callback?: unknown }),
    values?: unknown,
    callback?: unknown,
  ): unknown {
    const isText = typeof query === 'string';
    const isOfDriver = !isText && ('submit' in query || query.callback !== undefined);
    if (isOfDriver || typeof values === 'function' || callback) {
      return this.#send(query, values, callback);
    }
    return this.#run(query, values as unknown[] | undefined);
  }

  async #run(config: string | LimitedConfig, values?: unknown[]): Promise<QueryResult> {
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult>();
    const query = new Query(config, values) as EndingQuery;
    const end: Ending = (error, result) => {
      if (error) reject(error);
      else resolve(result as QueryResult);
    };
    query.callback = end;
    const parameters = this.#parameters;
    const { query_timeout: ofClient } = parameters;
    const limit = (typeof config === 'object' && config.query_timeout) || ofClient || 0;
    let timer: NodeJS.Timeout | undefined;
    try {
      // This method applies the time limit. The driver reads it while it is called.
      parameters.query_timeout = 0;
      try {
        this.#send(query, values);
      } finally {
        parameters.query_timeout = ofClient;
      }
      if (limit > 0) timer = setTimeout(() => this.#giveUp(query), limit);
      return await promise;
    } catch (error) {
      // The stack then leads to the caller, and not to the socket that received the error.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #send(...query: unknown[]): unknown {
    const send: (...parameters: unknown[]) => unknown = Reflect.get(Client.prototype, 'query');
    return Reflect.apply(send, this, query);
  }

  /** Ends the wait for the answer to a query, as the driver itself does. */
  #giveUp(query: EndingQuery): void {
    const error = new Error('Query read timeout');
    const { callback } = query;
    query.callback = nothing;
    process.nextTick(() => query.handleError(error, this.connection));
    callback(error);
    const place = this.#queue.indexOf(query);
    if (place !== -1) this.#queue.splice(place, 1); // a query that was not sent yet is never sent
    const pulse = Reflect.get(this, PULSE) as () => void;
    Reflect.apply(pulse, this, []);
  }

  /** The queries that wait until the one before them has ended. */
  get #queue(): unknown[] {
    return Reflect.get(this, '_queryQueue') as unknown[];
  }

  get #parameters(): ConnectionParameters {
    return Reflect.get(this, 'connectionParameters') as ConnectionParameters;
  }
}

function nothing(): void {
  // The wait for the answer has ended.
}
