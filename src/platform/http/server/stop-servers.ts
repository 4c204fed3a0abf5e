import type { Server } from 'node:http';
import { setImmediate as afterPoll } from 'node:timers/promises';
import { systemClock } from '#platform/clock/clock.js';
import type { RequestsInFlight } from './requests-in-flight.service.js';

/**
 * The milliseconds without a new request after which a stopping server accepts no more connections.
 */
const QUIET_MS = 1000;
/**
 * The longest time in milliseconds for which a stopping server waits until no new requests come.
 */
const DRAIN_MS = 10_000;
/** The milliseconds for which a stopping server waits for the first request of a new connection. */
const LAST_CALL_MS = 500;
const POLL_MS = 20;

/**
 * Stops servers so that accepted requests can end. Every response closes its connection, and the
 * listeners close. The function waits for the requests in flight, and then cuts off all
 * connections.
 *
 * @param drain true to go on listening until no more requests arrive, for at most ten seconds
 * @param limit the time after which requests in flight are cut off, in milliseconds from now
 * @returns the number of requests that were cut off
 */
export async function stopServers(
  servers: readonly Server[],
  inFlight: RequestsInFlight,
  { drain, limit }: { readonly drain: boolean; readonly limit: number },
): Promise<number> {
  const begun = systemClock.monotonic();
  inFlight.beginStop();
  if (drain) await until(() => inFlight.quietFor >= QUIET_MS, begun + DRAIN_MS);

  let open = servers.length;
  for (const server of servers) server.once('close', () => (open -= 1));
  // The event loop must first accept all waiting connections, because the operating system resets
  // connections that a listener has not accepted before it closes.
  await afterPoll();
  for (const server of servers) server.close();
  const lastCall = systemClock.monotonic() + LAST_CALL_MS;
  // An open connection without a request in flight may be new, and its request may still come.
  const isOver = () => open === 0 || (inFlight.count === 0 && systemClock.monotonic() >= lastCall);
  await until(isOver, begun + limit);

  const lost = inFlight.count;
  for (const server of servers) server.closeAllConnections();
  return lost;
}

async function until(condition: () => boolean, deadline: number): Promise<void> {
  while (!condition() && systemClock.monotonic() < deadline) await systemClock.sleep(POLL_MS);
}
