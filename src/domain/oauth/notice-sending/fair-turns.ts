/** A client with a notice that can be sent now. */
export interface DueClient {
  readonly clientId: string;
  /**
   * The tenants take turns in the sending of notices. The tenant of a client is its organization or
   * its owner. For a client that registered itself, which has neither, it is the user of the
   * notice.
   */
  readonly tenantId: string;
  /** The time from which its oldest notice could be sent, in milliseconds since 1970. */
  readonly since: number;
  /** True for a client that accepted a notice in the last 30 days. */
  readonly hasTaken: boolean;
}

/**
 * The state of a client. `taking`: the client accepted the last notice from this sender or, if this
 * sender remembers none, a notice in the last 30 days. `untried`: no result is known. `failing`:
 * the client did not accept the last notice from this sender. Clients are served in this order.
 */
export type Standing = 'taking' | 'untried' | 'failing';

const RANKS: readonly Standing[] = ['taking', 'untried', 'failing'];

/** A request that was sent and has no response yet. */
export interface BusyRequest {
  readonly clientId: string;
  readonly tenantId: string;
  /**
   * True if the request has lasted so long that it may be ended in favor of another client that
   * waits.
   */
  readonly isSlow: boolean;
}

/**
 * The limits of a lane, which is a part of a queue of notices. They limit the requests that wait
 * for a response at the same time: in all, to the clients of one tenant, and to one client.
 */
export interface LaneLimits {
  readonly most: number;
  readonly ofTenant: number;
  /**
   * The limit for a client that accepted the last notice from this sender. For every other client
   * the limit is 1.
   */
  readonly ofClient: number;
  /**
   * The most requests to clients that are untried or failing ({@link Standing}), in all and for one
   * tenant. Such a request may hang, so the remaining requests are kept for clients that accept
   * notices.
   */
  readonly unproven: number;
  readonly unprovenOfTenant: number;
  /**
   * The most requests to failing clients, in all and for one tenant. The other requests of
   * `unproven` are kept for clients that were not tried yet.
   */
  readonly failing: number;
  readonly failingOfTenant: number;
}

/**
 * The limits for the applications of organizations and users. Each queue has a lane with these
 * limits.
 */
export const REGISTERED_LIMITS: LaneLimits = {
  most: 16,
  ofTenant: 12,
  ofClient: 4,
  unproven: 12,
  unprovenOfTenant: 8,
  failing: 8,
  failingOfTenant: 4,
};

/** The most clients for which a sender remembers if they accepted the last notice. */
const MOST_REMEMBERED = 10_000;

/** Stores in `took` if a client accepted the last notice. A full map is emptied first. */
export function rememberAnswer(took: Map<string, boolean>, clientId: string, hasTaken: boolean) {
  if (took.size >= MOST_REMEMBERED) took.clear();
  took.set(clientId, hasTaken);
}

/** The state of a sender, by which {@link chooseTurns} decides which clients get notices next. */
export interface Turns<Busy extends BusyRequest> {
  readonly limits: LaneLimits;
  /** The requests that have no response yet, the oldest first. */
  readonly busy: readonly Busy[];
  /**
   * The id of the tenant that had the last turn; the next tenant in the order of ids is served
   * first.
   */
  readonly last: string;
  /**
   * Returns true if a client accepted the last notice from this sender, and false if it did not.
   * Returns undefined if this sender remembers no notice to the client.
   */
  tookLast(clientId: string): boolean | undefined;
}

/** The result of {@link chooseTurns}. */
export interface Chosen<Busy extends BusyRequest> {
  /** For each client, the number of its notices that are sent now. */
  readonly counts: ReadonlyMap<string, number>;
  readonly last: string;
  /** The requests that are ended now, because other clients wait. */
  readonly yielding: readonly Busy[];
}

/**
 * Chooses the clients whose notices are sent now. The tenants take turns, and each turn goes to one
 * client of the tenant. A client that accepts notices comes first, then one that was not tried yet,
 * then one that did not accept its last notice. Among equal clients, the one with the fewest
 * requests comes first, then the one that has waited longest.
 *
 * Clients that are not known to accept notices share only a part of the requests. So receivers that
 * do not respond do not delay the others. Within this part, a slow request is ended in favor of a
 * waiting client that has no request. No request is ended for a client that did not accept its last
 * notice.
 */
export function chooseTurns<Busy extends BusyRequest>(
  due: readonly DueClient[],
  turns: Turns<Busy>,
): Chosen<Busy> {
  const load = new Load(due, turns);
  const counts = new Map<string, number>();
  const tenants = Map.groupBy(due, ({ tenantId }) => tenantId);
  const names = [...tenants.keys()].toSorted();
  const first = names.findIndex((name) => name > turns.last);
  const order = first > 0 ? [...names.slice(first), ...names.slice(0, first)] : names;
  let { last } = turns;
  for (let isMoving = true; isMoving;) {
    isMoving = false;
    for (const tenant of order) {
      const next = load.next(tenants.get(tenant) ?? []);
      if (!next) continue;
      load.add(next);
      counts.set(next.clientId, (counts.get(next.clientId) ?? 0) + 1);
      last = tenant;
      isMoving = true;
    }
  }
  return { counts, last, yielding: load.yielding(due, turns.busy) };
}

type Requested = Pick<BusyRequest, 'clientId' | 'tenantId'>;

/** Counts the requests that wait for a response or are chosen now, separately for each limit. */
class Load {
  readonly #counts = new Map<string, number>();
  readonly #hasTaken: ReadonlyMap<string, boolean>;

  constructor(
    due: readonly DueClient[],
    private readonly turns: Turns<BusyRequest>,
  ) {
    this.#hasTaken = new Map(due.map(({ clientId, hasTaken }) => [clientId, hasTaken]));
    for (const request of turns.busy) this.add(request);
  }

  add(request: Requested): void {
    for (const [name] of this.#limitsOf(request)) {
      this.#counts.set(name, this.#of(name) + 1);
    }
  }

  /** Returns the client of a tenant that is served next; undefined if the limits allow none. */
  next(clients: readonly DueClient[]): DueClient | undefined {
    const rank = (one: DueClient) => this.#rank(one);
    const requests = ({ clientId }: DueClient) => this.#of(`client ${clientId}`);
    const [next] = clients
      .filter((one) => this.#reached(one).length === 0)
      .toSorted(
        (a, b) => rank(a) - rank(b) || requests(a) - requests(b) || compare(a.since, b.since),
      );
    return next;
  }

  /**
   * Returns the slow requests that are ended in favor of clients without a request, one for each
   * such client. No request is ended in favor of a client that did not accept its last notice.
   */
  yielding<Busy extends BusyRequest>(due: readonly DueClient[], busy: readonly Busy[]): Busy[] {
    const slow = new Set(busy.filter(({ isSlow }) => isSlow));
    if (slow.size === 0) return [];
    const waiting = due
      .filter((one) => this.#standing(one.clientId) !== 'failing')
      .filter(({ clientId }) => this.#of(`client ${clientId}`) === 0)
      .toSorted((a, b) => this.#rank(a) - this.#rank(b) || compare(a.since, b.since));
    const yielding: Busy[] = [];
    for (const client of waiting) {
      const reached = this.#reached(client);
      const [one] = [...slow].filter((request) => {
        const names = this.#limitsOf(request).map(([name]) => name);
        return reached.every((name) => names.includes(name));
      });
      if (!one) continue;
      slow.delete(one);
      yielding.push(one);
    }
    return yielding;
  }

  /** Returns the names of the limits that one more request would exceed. */
  #reached(request: Requested): string[] {
    return this.#limitsOf(request)
      .filter(([name, most]) => this.#of(name) >= most)
      .map(([name]) => name);
  }

  #rank({ clientId }: DueClient): number {
    return RANKS.indexOf(this.#standing(clientId));
  }

  #of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #standing(clientId: string): Standing {
    const took = this.turns.tookLast(clientId);
    if (took === false) return 'failing';
    return took === true || this.#hasTaken.get(clientId) === true ? 'taking' : 'untried';
  }

  /** Returns the limits that apply to a request, each with the name of its count in `#counts`. */
  #limitsOf({ clientId, tenantId }: Requested): [name: string, most: number][] {
    const { limits } = this.turns;
    const standing = this.#standing(clientId);
    const ofClient = this.turns.tookLast(clientId) === true ? limits.ofClient : 1;
    const names: [string, number][] = [
      ['all', limits.most],
      [`tenant ${tenantId}`, limits.ofTenant],
      [`client ${clientId}`, ofClient],
    ];
    if (standing === 'taking') return names;
    names.push(['unproven', limits.unproven], [`unproven of ${tenantId}`, limits.unprovenOfTenant]);
    if (standing !== 'failing') return names;
    names.push(['failing', limits.failing], [`failing of ${tenantId}`, limits.failingOfTenant]);
    return names;
  }
}

/**
 * Compares two times for a sort. It does not subtract them, because two times of -Infinity would
 * give NaN.
 */
function compare(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
