import type { TierName } from '../routing/route-policy.js';
import type { RememberedCaller } from './access-policy.js';

/** The bucket in which a statement counts a request. */
export interface CountedBucket {
  readonly key: string;
  readonly tier: TierName;
}

/**
 * The rate limit of a request, about which the database has not decided yet. This process knows of
 * no reason to refuse the request.
 */
export interface DeferredLimit {
  /**
   * Returns the bucket, for a statement that begins now and counts the request in it. After the
   * statement, `noteAdmitted` or `decide` must be called. Returns undefined if the client has left,
   * or if another request of the bucket is being decided; then `decide` must be called first.
   */
  begin: () => CountedBucket | undefined;
  /**
   * Records that a statement has counted and admitted the request.
   *
   * @param debt the milliseconds until the bucket is equal to an unused one
   */
  noteAdmitted: (debt: number) => void;
  /**
   * Decides about the request, unless a statement has admitted it. Further calls give the same
   * result.
   *
   * @throws DomainError rate_limited
   */
  decide: () => Promise<void>;
}

/**
 * A request that a handler gets before its rate limit and its caller are decided, because this
 * process remembers the caller, or because the route has none. The statement of the handler decides
 * both (`within`), or they are decided while the handler reads (`beside`). If the handler throws,
 * the error filter first decides both, so that a refusal comes before any other error. If the
 * database is away, it decides only the limit.
 */
export class Unconfirmed {
  #confirmed: Promise<unknown> | undefined;

  /**
   * @param caller undefined for a route without a caller
   * @param limit the limit of the request; undefined if it is already decided
   * @param find decides the limit, looks up the caller and verifies that it meets the rule of the
   *   route. Returns the session, and throws a DomainError for a refusal
   * @param admit notes the caller for the log, and gives the response the headers of the session,
   *   after a statement has found it
   */
  constructor(
    readonly caller: RememberedCaller | undefined,
    readonly limit: DeferredLimit | undefined,
    private readonly find: () => Promise<unknown>,
    private readonly admit?: (session: unknown) => void,
  ) {}

  /**
   * Decides the limit, looks up the caller and verifies that it meets the rule of the route, unless
   * a statement has done so. Further calls give the same result.
   *
   * @returns the session
   * @throws DomainError for a refusal
   */
  confirm(): Promise<unknown> {
    return (this.#confirmed ??= this.find());
  }

  /** True after the first call of {@link confirm}, or after a statement has found the caller. */
  get hasBegun(): boolean {
    return this.#confirmed !== undefined;
  }

  /**
   * Records that a statement has found the caller and has counted the request in its limit.
   *
   * @param session the remembered session, with what the statement has read about it
   */
  noteConfirmed(session: unknown): void {
    this.#confirmed = Promise.resolve(session);
    this.admit?.(session);
  }
}
