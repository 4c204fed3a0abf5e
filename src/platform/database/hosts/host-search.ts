import { systemClock, type Clock } from '#platform/clock/clock.js';
import type { DatabaseHost } from '#platform/database/url/database-url.js';
import { isDatabaseAway, reasonOf } from '#platform/database/statements/faults.js';
import { isRefusal } from './refusals.js';

/** The milliseconds for which a host that was found usable is used without another check. */
const FRESH = 1_000;
/**
 * The milliseconds without an answer after which the next host is tried at the same time. So a dead
 * host delays a connection only this long.
 */
const STAGGER = 250;

/**
 * Connects to a host and ends the connection. It rejects if the host cannot be reached or is not
 * what the service needs.
 */
type Probe = (host: DatabaseHost) => Promise<void>;

/**
 * The error if no host of the list can be used now. Its code is the SQLSTATE of a failed
 * connection, so that callers treat the error as a failed connection and try again later.
 */
export class NoFittingHost extends Error {
  readonly code = '08001';
}

/**
 * Finds the host for new connections, which is the first that passes the probe. It tries the host
 * that was used last, then the others in their order. The result is used for a second. All
 * connections that are made during a search wait for that search.
 */
export class HostSearch {
  private last: DatabaseHost;
  private foundAt = -Infinity;
  private running: Promise<DatabaseHost> | undefined;

  constructor(
    private readonly hosts: readonly [DatabaseHost, ...DatabaseHost[]],
    private readonly probe: Probe,
    private readonly clock: Clock = systemClock,
  ) {
    this.last = hosts[0];
  }

  /**
   * Returns the host to connect to.
   * @throws NoFittingHost if no host can be used; the driver's error if a host refuses the user or
   *   the password
   */
  choose(): Promise<DatabaseHost> {
    if (this.clock.monotonic() - this.foundAt < FRESH) return Promise.resolve(this.last);
    this.running ??= this.search().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /**
   * Makes the next connection search for a host again. The caller has seen a failed connection, or
   * a server that refused a write.
   */
  doubt(): void {
    this.foundAt = -Infinity;
  }

  private async search(): Promise<DatabaseHost> {
    const others = this.hosts.filter((host) => host !== this.last);
    this.last = await firstFit([this.last, ...others], this.probe);
    this.foundAt = this.clock.monotonic();
    return this.last;
  }
}

/**
 * Resolves with the first host that can be used. It tries the hosts in order, and begins with the
 * next one if the previous one has failed, or has not answered within `STAGGER`.
 */
function firstFit(hosts: readonly DatabaseHost[], probe: Probe): Promise<DatabaseHost> {
  const { promise, resolve, reject } = Promise.withResolvers<DatabaseHost>();
  const faults = new Map<DatabaseHost, unknown>();
  const waiting = hosts.values();
  let over = false;
  const tryNext = async (): Promise<void> => {
    const host = over ? undefined : waiting.next().value;
    if (host === undefined) return;
    const later = setTimeout(() => void tryNext(), STAGGER);
    try {
      await probe(host);
      over = true;
      resolve(host);
    } catch (fault) {
      faults.set(host, fault);
      if (faults.size === hosts.length) reject(faultOf(faults));
      else void tryNext();
    } finally {
      clearTimeout(later);
    }
  };
  void tryNext();
  return promise;
}

/**
 * Returns the fault of one host that no later attempt can avoid, such as a wrong password. If there
 * is none, returns an error that names every host.
 */
function faultOf(faults: ReadonlyMap<DatabaseHost, unknown>): unknown {
  const lasting = [...faults.values()].find((fault) => isRefusal(fault) || !isDatabaseAway(fault));
  if (lasting !== undefined) return lasting;
  const reasons = [...faults].map(
    ([{ host, port }, fault]) => `${host}:${port}: ${reasonOf(fault)}`,
  );
  return new NoFittingHost(`no host can be used: ${reasons.join('; ')}`);
}
