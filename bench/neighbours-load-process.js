/**
 * The clients of the tenant with the heavy load. They have a process of their own, so that reading
 * their answers does not delay the clients of the other tenant, whose times are measured.
 */
import { Agent, request } from 'node:http';

const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const statuses = new Map();
let run = 0;
let addresses = 0;
let loops = [];
/**
 * The requests whose answers have not ended. Undefined if the load waits for its last answers at
 * its end, and does not cut them off.
 */
let left;

process.on('message', ({ start, stop }) => {
  if (start) begin(start);
  if (stop) void end();
});
process.on('disconnect', () => process.exit());

/**
 * Ends the load, and reports the number of answers by status. Waits for the last answers, or cuts
 * them off.
 */
async function end() {
  run += 1;
  for (const sent of left ?? []) sent.destroy();
  const answers = Object.fromEntries(statuses);
  await Promise.all(loops);
  process.send({ statuses: answers });
}

/** Returns true if a load is the one that runs now, and false after it was stopped. */
function isCurrent(own) {
  return own === run;
}

/**
 * Begins a load.
 * @param load `{ baseUrl, clients, requests, leaves }`: each client sends all the requests, one
 *   after the other; with `leaves`, the end of the load cuts off answers that have not ended
 */
function begin({ baseUrl, clients, requests, leaves = false }) {
  statuses.clear();
  left = leaves ? new Set() : undefined;
  const own = run;
  loops = Array.from({ length: clients }, async (_, client) => {
    let turn = client;
    do {
      const status = await send(baseUrl, requests[turn % requests.length]);
      turn += 1;
      if (own === run) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // A client that is refused at once waits a little before its next request.
      if (status === 429 || status === 503) await new Promise((go) => setTimeout(go, 50));
    } while (isCurrent(own));
  });
}

/**
 * Sends a request from a client IP address that no other request has, and drops the body of its
 * answer.
 * @returns the status; 0 if there was no answer
 */
function send(baseUrl, { method, path, headers, body }) {
  return new Promise((resolve) => {
    addresses += 1;
    const address = `11.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
    const sent = request(
      new URL(path, baseUrl),
      { agent, method, headers: { ...headers, 'x-forwarded-for': address } },
      (answer) => {
        answer.resume().on('close', () => resolve(answer.statusCode));
      },
    );
    left?.add(sent);
    sent.on('error', () => resolve(0));
    sent.on('close', () => left?.delete(sent));
    sent.end(body);
  });
}
