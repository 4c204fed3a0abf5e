/** A client with a notice that is due. */
export interface DueClient {
  readonly clientId: string;
  /** The organization or the owner of the client; null for a client without either. */
  readonly tenantId: string | null;
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
  /** Returns true for a client whose last request failed. */
  isFailing(clientId: string): boolean;
  /** The number of requests to failing clients that may begin now. */
  readonly freeForFailing: number;
}

/** The clients whose notices are sent now, each with a number of notices. */
export interface Chosen {
  readonly counts: ReadonlyMap<string, number>;
  readonly last: string;
}

/**
 * Chooses the clients whose notices are sent now. Each tenant has one turn after the other, and
 * gives it to the client with the fewest requests. Failing clients come last and share a few
 * requests, so that a receiver that hangs delays itself.
 */
export function chooseTurns(due: readonly DueClient[], turns: Turns): Chosen {
  const counts = new Map<string, number>();
  const taken = new Map<string, number>();
  const tenants = Map.groupBy(due, ({ tenantId }) => tenantId ?? '');
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
        (freeForFailing > 0 || !turns.isFailing(clientId)),
    );
    const rank = ({ clientId }: DueClient) =>
      loadOf(clientId) + (turns.isFailing(clientId) ? 1e6 : 0);
    const [next] = open.toSorted((a, b) => rank(a) - rank(b));
    if (!next) return false;
    if (turns.isFailing(next.clientId)) freeForFailing -= 1;
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
