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
}

/** The state of a sender, which decides whose turn it is. */
export interface Turns {
  /** The number of requests that may begin now. */
  readonly free: number;
  /** The requests that are under way, for each client and for each tenant. */
  readonly ofClient: ReadonlyMap<string, number>;
  readonly ofTenant: ReadonlyMap<string, number>;
  /** The tenant whose turn was last. */
  readonly last: string;
  /** The number of requests that one client, and that one tenant, may have under way. */
  mostOf(clientId: string): number;
  readonly mostOfTenant: number;
  /** Returns true if a client took its last notice, and false if not; undefined without any. */
  tookLast(clientId: string): boolean | undefined;
  /** The number of requests that may begin now to clients that did not take their last notice. */
  readonly freeForFailing: number;
}

/** The order of the clients of a tenant, by their last notices: taken, not tried, not taken. */
const RANKS: readonly (boolean | undefined)[] = [true, undefined, false];

/** The clients whose notices are sent now, each with a number of notices. */
export interface Chosen {
  readonly counts: ReadonlyMap<string, number>;
  readonly last: string;
}

/**
 * Chooses the clients whose notices are sent now. The tenants take turns, and each turn goes to one
 * client of the tenant. A client that took its last notice comes first, then one that was not
 * tried, then one that did not take it. Of equal clients, the one with the fewest requests comes
 * first, then the one that has waited longest. Clients that did not take their last notice share a
 * few requests, so that receivers that hang do not delay the others.
 */
export function chooseTurns(due: readonly DueClient[], turns: Turns): Chosen {
  const counts = new Map<string, number>();
  const taken = new Map<string, number>();
  const tenants = Map.groupBy(due, ({ tenantId }) => tenantId);
  const names = [...tenants.keys()].toSorted();
  const first = names.findIndex((name) => name > turns.last);
  const order = first > 0 ? [...names.slice(first), ...names.slice(0, first)] : names;
  let { free, freeForFailing, last } = turns;
  const loadOf = (id: string) => (turns.ofClient.get(id) ?? 0) + (counts.get(id) ?? 0);
  const turnOf = (tenant: string): boolean => {
    const load = (turns.ofTenant.get(tenant) ?? 0) + (taken.get(tenant) ?? 0);
    if (load >= turns.mostOfTenant) return false;
    const open = (tenants.get(tenant) ?? []).filter(
      ({ clientId }) =>
        loadOf(clientId) < turns.mostOf(clientId) &&
        (freeForFailing > 0 || turns.tookLast(clientId) !== false),
    );
    const rank = ({ clientId }: DueClient) => RANKS.indexOf(turns.tookLast(clientId));
    const [next] = open.toSorted(
      (a, b) =>
        rank(a) - rank(b) || loadOf(a.clientId) - loadOf(b.clientId) || compare(a.since, b.since),
    );
    if (!next) return false;
    if (turns.tookLast(next.clientId) === false) freeForFailing -= 1;
    counts.set(next.clientId, (counts.get(next.clientId) ?? 0) + 1);
    taken.set(tenant, (taken.get(tenant) ?? 0) + 1);
    return true;
  };
  for (let isMoving = true; isMoving && free > 0;) {
    isMoving = false;
    for (const tenant of order) {
      if (free === 0 || !turnOf(tenant)) continue;
      free -= 1;
      last = tenant;
      isMoving = true;
    }
  }
  return { counts, last };
}

/** Compares two times, of which one may be before all others (-Infinity). */
function compare(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
