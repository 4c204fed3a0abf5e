import type { IncomingHttpHeaders } from 'node:http';
import { expect } from 'vitest';
import { ReceiverSender } from '../../src/domain/oauth/event-receivers/receiver-sender.js';
import type { TestApp } from './app.js';
import type { Client } from './client.js';
import { writeEvent } from './feed-reader.js';
import { orgApi } from './org-api.js';
import { rows } from './rows.js';
import { startToldServer, type ToldServer } from './told-server.js';

/**
 * A request with events that came to a receiver: the headers, and the body as text and as bytes.
 */
export interface ReceivedEvents {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly bytes: Buffer;
}

/** A server that gets events of the audit log and records the requests. */
export type EventServer = ToldServer<ReceivedEvents>;

/** Starts a server on loopback that answers 200 until a test changes `answer`. */
export function startEventServer(path = '/events'): Promise<EventServer> {
  return startToldServer({
    path,
    read: (text, { headers }, bytes) => ({ headers, text, bytes }),
    status: 200,
  });
}

/** A receiver of the audit log, as the response to its creation shows it. */
export interface CreatedReceiver {
  readonly id: string;
  readonly secret: string;
}

/** Makes a receiver of the audit log with the session of an admin. */
export async function madeReceiver(
  admin: Client,
  url: string,
  more: object = {},
): Promise<CreatedReceiver> {
  const body = { name: 'SIEM', kind: 'webhook', url, ...more };
  const answer = await orgApi(admin, 'POST', '/event-receivers', body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json as CreatedReceiver;
}

/**
 * Waits until a server got the event about the creation of its own receiver. Then forgets all
 * requests so far. They may include an event from before the creation that came into the feed
 * later.
 */
export async function untilCreation(server: EventServer): Promise<void> {
  const isThere = () => server.received.some(({ text }) => text.includes('event_receiver_created'));
  await expect.poll(isThere, { timeout: 90_000, interval: 20 }).toBe(true);
  server.received.splice(0);
}

/** Calls a route of one receiver as an admin. `tail` is the end of the path after the id. */
export const receiverApi = (
  admin: Client,
  method: string,
  { id }: Pick<CreatedReceiver, 'id'>,
  tail = '',
  body?: unknown,
) => orgApi(admin, method, `/event-receivers/${id}${tail}`, body);

/** Makes the sender look for events now, without its usual pause. */
export function wakeReceivers(app: TestApp): void {
  app.nest.get(ReceiverSender, { strict: false }).wake();
}

/** Ends every pause after a failed delivery, so that the sender tries again now. */
export async function retryNow(app: TestApp): Promise<void> {
  await rows(app.dataSource, "UPDATE event_receivers SET next_attempt_at = '-infinity'");
  await rows(app.dataSource, "UPDATE undelivered_events SET next_attempt_at = '-infinity'");
  wakeReceivers(app);
}

/**
 * Writes `n` events of an organization, and makes the sender look for them. Returns their ids in
 * the order of the feed.
 */
export async function writeEvents(app: TestApp, orgId: string, n: number): Promise<string[]> {
  const ids: string[] = [];
  for (let written = 0; written < n; written += 1) {
    ids.push(await writeEvent(app.dataSource, orgId));
  }
  wakeReceivers(app);
  return ids;
}

/** Returns the ids of the events that a webhook got, in the order of the requests. */
export const webhookIds = ({ received }: EventServer): string[] =>
  received.map(({ headers }) => String(headers['webhook-id']));
