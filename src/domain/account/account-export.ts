import type { AuditPlace } from '#domain/audit/audit-filter.js';
import { activityText } from './activity-text.js';
import { listHeldCertificates, type HeldRecords } from './held-records.repository.js';
import { listOwnEvents, type EventRange, type OwnEvent } from './own-events.repository.js';
import { ownDetails } from './own-details.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The most rows of a list that one statement of an export reads, so that only these rows are in
 * memory.
 */
const BATCH = 500;

/**
 * Runs one read of an export, after a check that the session of the user is still valid. The read
 * counts toward the limit on the database connections and time of one organization.
 */
export type ReadPart = <Found>(work: (tx: EntityManager) => Promise<Found>) => Promise<Found>;

/**
 * The parts of an export that are read before its first byte is sent, so that a failure can still
 * be answered with an error.
 */
export interface ExportHead {
  readonly exportedAt: Date;
  readonly records: HeldRecords;
  readonly applications: readonly unknown[];
}

/**
 * Writes the export of a user's data as one JSON document. A list that may be long is read in
 * batches. Each batch is read after the client has received the previous one, so that at most one
 * batch is in memory.
 */
export async function* exportedJson(
  userId: string,
  { exportedAt, records, applications }: ExportHead,
  read: ReadPart,
): AsyncGenerator<string> {
  const head = { exported_at: exportedAt, ...records, applications };
  yield JSON.stringify(head, undefined, 1).replace(/\n\}$/, '');
  yield* list('ssh_certificates', certificates(userId, read));
  yield* list('activity', activity(userId, read));
  yield '\n}\n';
}

async function* list(name: string, batches: AsyncIterable<readonly unknown[]>) {
  yield `,\n ${JSON.stringify(name)}: [`;
  let separator = '\n  ';
  for await (const batch of batches) {
    yield separator + batch.map((item) => JSON.stringify(item)).join(',\n  ');
    separator = ',\n  ';
  }
  yield '\n ]';
}

async function* certificates(userId: string, read: ReadPart) {
  let below: string | undefined;
  for (;;) {
    const range = { below, limit: BATCH };
    const batch = await read((tx) => listHeldCertificates(tx, userId, range));
    if (batch.length > 0) yield batch;
    if (batch.length < BATCH) return;
    below = batch.at(-1)?.serial;
  }
}

async function* activity(userId: string, read: ReadPart) {
  let after: AuditPlace | undefined;
  for (;;) {
    const range: EventRange = { after, limit: BATCH };
    const batch = await read((tx) => listOwnEvents(tx, userId, range));
    if (batch.length > 0) yield batch.map((event) => exportedEvent(event, userId));
    if (batch.length < BATCH) return;
    after = batch.at(-1)?.place;
  }
}

function exportedEvent(event: OwnEvent, userId: string) {
  const { id, type, createdAt, requestId } = event;
  const { ip, userAgent } = originFor(event, userId);
  return {
    id,
    type,
    text: activityText(event, userId),
    created_at: createdAt,
    address: ip,
    device: userAgent,
    request_id: requestId,
    details: ownDetails(event, userId),
  };
}

/**
 * Returns the IP address and the user agent (browser or program) of an event for the user who reads
 * it. If another person acted, both are null, because they are data about that person.
 */
export function originFor(
  { actorId, ip, userAgent }: OwnEvent,
  userId: string,
): Pick<OwnEvent, 'ip' | 'userAgent'> {
  const isShown = actorId === null || actorId === userId;
  return isShown ? { ip, userAgent } : { ip: null, userAgent: null };
}
