import type { Server } from 'node:http';
import { setImmediate as afterPoll, setTimeout as delay } from 'node:timers/promises';
import type { RequestsInFlight } from './requests-in-flight.service.js';

/** A drain is over when no request came for so long… */
const QUIET_MS = 1000;
/** …or after this. */
const DRAIN_MS = 10_000;
/** What a connection that came last has to bring its request. */
const LAST_CALL_MS = 500;
const POLL_MS = 20;

/**
 * Stops servers without losing a request they took: every answer ends its connection, listeners close, what is in
 * flight ends, and what is left then is cut off.
 *
 * @param drain whether to go on listening until traffic has gone elsewhere, or for ten seconds
 * @param limit when to cut off what is still in flight, in milliseconds from now
 * @returns how many requests were cut off
 */
export async function stopServers(
  servers: readonly Server[],
  inFlight: RequestsInFlight,
  { drain, limit }: { readonly drain: boolean; readonly limit: number },
): Promise<number> {
  const begun = performance.now();
  inFlight.beginStop();
  if (drain) await until(() => inFlight.quietFor >= QUIET_MS, begun + DRAIN_MS);

  let open = servers.length;
  for (const server of servers) server.once('close', () => (open -= 1));
  // Right after the loop took what was waiting to be accepted: what waits in a closed listener's queue is reset.
  await afterPoll();
  for (const server of servers) server.close();
  const lastCall = performance.now() + LAST_CALL_MS;
  // An open connection without a request in flight may be one that has only just come.
  const isOver = () => open === 0 || (inFlight.count === 0 && performance.now() >= lastCall);
  await until(isOver, begun + limit);

  const lost = inFlight.count;
  for (const server of servers) server.closeAllConnections();
  return lost;
}

async function until(condition: () => boolean, deadline: number): Promise<void> {
  while (!condition() && performance.now() < deadline) await delay(POLL_MS);
}
