import { expect } from 'vitest';
import { startEventServer } from '../../event-receivers.js';
import { orgApi } from '../../org-api.js';
import { rows } from '../../rows.js';
import type { Stage } from '../stage.js';

/** The URL that the examples show in place of the receiver's live one. */
const SAMPLE_URL = 'https://siem.example.com/events';

/** Records examples of the operations on receivers, to which the service sends audit events. */
export async function receiverExamples(stage: Stage): Promise<string> {
  const server = await startEventServer();
  try {
    return await recordedWith(server.uri, stage);
  } finally {
    await server.close();
  }
}

/**
 * Calls the operations one after the other. First waits until the receiver has taken the event
 * about its own creation. Otherwise the counts in later responses would differ between runs.
 */
async function recordedWith(url: string, stage: Stage): Promise<string> {
  const { app, admin } = stage;
  const exchanges = await stage.exchanges();
  exchanges.learn(url, SAMPLE_URL);
  const { call } = exchanges.bound;
  const made = await call('createEventReceiver', {
    body: { name: 'SIEM', kind: 'webhook', url, types: ['org_issuer_released'] },
  });
  const id = made.json.id as string;
  const taken = () => rows(app.dataSource, TAKEN, [id]);
  await expect.poll(taken, { timeout: 90_000, interval: 20 }).toHaveLength(1);
  await rows(app.dataSource, DEAD_LETTERS, [id]);
  await rows(app.dataSource, COUNTED, [id]);
  await call('listEventReceivers');
  const shown = await call('getEventReceiver', { parameters: { id } });
  const [newest, oldest] = shown.json.dead_letters as [{ id: string }, { id: string }];
  await call('dropDeadLetter', { parameters: { id, letter_id: newest.id } });
  await call('rotateEventReceiverSecret', { parameters: { id }, body: { overlap_hours: 24 } });
  await call('changeEventReceiver', {
    parameters: { id, 'if-match': shown.headers.get('etag') },
    body: { name: 'SIEM of the security team', status: 'paused' },
  });
  await call('repeatDeadLetter', { parameters: { id, letter_id: oldest.id } });
  await orgApi(admin, 'PATCH', `/event-receivers/${id}`, { status: 'enabled' });
  await call('testEventReceiver', { parameters: { id } });
  await call('removeEventReceiver', { parameters: { id } });
  return exchanges.recorded();
}

/** SQL that finds the receiver if it has taken an event, and no delivery to it is in progress. */
const TAKEN = `
  SELECT id FROM event_receivers
  WHERE id = $1 AND last_taken_at IS NOT NULL AND leased_until = '-infinity'`;

/** SQL that inserts two events that the service could not deliver for a day and has given up. */
const DEAD_LETTERS = `
  INSERT INTO undelivered_events (receiver_id, event_id, type, event_at, dead_at, last_result)
  SELECT $1, gen_random_uuid(), 'org_issuer_released', now() - interval '1 day', now(), 'answer 503'
  FROM generate_series(1, 2)`;

/**
 * SQL that sets the number of events that were sent to the receiver, and the number that failed.
 * The two failures are those of {@link DEAD_LETTERS}.
 */
const COUNTED = `
  INSERT INTO notice_counts (client_id, kind, self_registered, sent, failed)
  VALUES ($1, 'audit-webhook', false, 120, 2)
  ON CONFLICT (client_id, kind, day) DO UPDATE SET sent = 120, failed = 2`;
