/** A client with a notice that is due. */
export interface DueClient {
  readonly clientId: string;
  /**
   * The organization or the owner of the client. For a client that registered itself, which has
   * neither, it is the user of the notice.
   */
  readonly tenantId: string;
  /** The time since when its oldest notice is due, in milliseconds. */
  readonly since: number;
  /** True for a client that took a notice in the last 30 days. */
  readonly hasTaken: boolean;
}

/**
 * A client that took its last notice, one that was not tried yet, or one that did not take its last
 * notice. The order is that of turns.
 */
export type Standing = 'taking' | 'untried' | 'failing';

const RANKS: readonly Standing[] = ['taking', 'untried', 'failing'];

/** A request that is under way. */
export interface BusyRequest {
  readonly clientId: string;
  readonly tenantId: string;
  /** True if the request has lasted so long that it gives its place to a client that waits. */
  readonly isSlow: boolean;
}

/** The numbers of requests that may be under way in a lane. */
export interface LaneLimits {
  readonly most: number;
  readonly ofTenant: number;
  /** A client has one request at a time until it has taken a notice from this sender. */
  readonly ofClient: number;
  /**
   * Requests to clients that are untried or failing, in all and of a tenant: each may hang, and the
   * rest is for clients that take notices.
   */
  readonly unproven: number;
  readonly unprovenOfTenant: number;
  /** Requests to failing clients: the rest of `unproven` is for clients that were not tried. */
  readonly failing: number;
  readonly failingOfTenant: number;
}

/** The limits for the applications of organizations and users, of which each queue has a lane. */
export const REGISTERED_LIMITS: LaneLimits = {
  most: 16,
  ofTenant: 12,
  ofClient: 4,
  unproven: 12,
  unprovenOfTenant: 8,
  failing: 8,
  failingOfTenant: 4,
};

/** The number of clients whose last answer a sender remembers. */
const MOST_REMEMBERED = 10_000;

/** Remembers if a client took what was sent. A full memory is emptied first. */
export function rememberAnswer(took: Map<string, boolean>, clientId: string, hasTaken: boolean) {
  if (took.size >= MOST_REMEMBERED) took.clear();
  took.set(clientId, hasTaken);
}

/** The state of a sender, which decides whose turn it is. */
export interface Turns<Busy extends BusyRequest> {
  readonly limits: LaneLimits;
  /** The requests that are under way, the oldest first. */
  readonly busy: readonly Busy[];
  /** The tenant whose turn was last. */
  readonly last: string;
  /**
   * Returns true if a client took the last notice that this sender sent it, and false if it did
   * not. Undefined if this sender remembers none.
   */
  tookLast(clientId: string): boolean | undefined;
}

/** The result of {@link chooseTurns}. */
export interface Chosen<Busy extends BusyRequest> {
  /** The clients whose notices are sent now, each with a number of notices. */
  readonly counts: ReadonlyMap<string, number>;
  readonly last: string;
  /** The requests that end now, because other clients wait for their places. */
  readonly yielding: readonly Busy[];
}

/**
 * Chooses the clients whose notices are sent now. The tenants take turns, and each turn goes to one
 * client of the tenant. A client that takes notices comes first, then one that was not tried, then
 * one that did not take its last notice. Of equal clients, the one with the fewest requests comes
 * first, then the one that has waited longest. Clients that are not known to take notices share a
 * part of the requests, so that receivers that hang do not delay the others. Of those that are not
 * known to hang, a slow request gives its place to a client that has none.
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

/** The requests that are under way or chosen, by the names that limits are about. */
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

  /** Returns the client of a tenant whose turn it is; undefined if none may have one. */
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
   * Returns the slow requests that give their places to clients without a request, one for each
   * such client. A failing client gets no such place.
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

  /** Returns the names of the limits that a further request would exceed. */
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

  /** Returns the limits that a request counts for, each with its name. */
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

/** Compares two times for a sort. A time can be -Infinity, which comes before every other time. */
function compare(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
