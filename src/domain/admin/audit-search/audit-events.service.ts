import { Inject, Injectable } from '@nestjs/common';
import {
  countTimeline,
  findAuditEvent,
  listAuditEvents,
} from '#domain/audit/audit-events.repository.js';
import type {
  AuditFilter,
  AuditFound,
  AuditPeople,
  AuditPlace,
  AuditRange,
  AuditRow,
} from '#domain/audit/audit-filter.js';
import {
  endOfFeed,
  feedDelayOf,
  FIRST_PLACE,
  listFeed,
  restartOfFeed,
  type FeedPlace,
  type FeedRow,
} from '#domain/audit/feed/audit-feed.repository.js';
import { writeFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import { ofTypes, readFeedLines, type FeedLines } from '#domain/audit/feed/feed-lines.js';
import type { SealedPlace } from '#domain/audit/sealed-export/sealed-export.js';
import { checkReader, type Reader } from '#domain/directory/api-tokens/reader.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import { writeCursor } from './audit-cursor.js';
import { knownPerson, type AuditSearch } from './audit-question.js';
import {
  FIRST_LEAF,
  proveConsistency,
  readCheckpoints,
  sealedParts,
  type CheckpointPage,
  type ConsistencyProof,
} from './sealed-log.js';
import {
  MOST_PEOPLE,
  peopleNamed,
  presentMembers,
  withPresentUsers,
} from './searched-people.repository.js';
import { timelineOf, type Timeline } from './timeline.js';

/** The number of events that one statement reads for an export of the log. */
const BATCH = 500;

/** The number of sections of a timeline, and the most events that it counts. */
const TIMELINE = { sections: 24, most: 5_000 } as const;

/**
 * A search in the audit log, with the position after which it begins and the number of events that
 * it returns.
 */
export interface AuditQuery {
  readonly search: AuditSearch;
  readonly after: AuditPlace | undefined;
  /**
   * The most events to return. If it is undefined, a page has the usual size, and an export has all
   * events.
   */
  readonly limit: number | undefined;
}

/**
 * The cursor that stands for the present end of the feed, for a client that wants only later
 * events. The feed is the order in which programs read the audit log.
 */
export const LATEST = 'latest';

/**
 * The part of the feed that a client reads: the events after a position, or all of them without
 * `after`. At most `limit` events are read, and of these only the `types` are returned.
 */
export interface FeedQuery {
  readonly after: FeedPlace | typeof LATEST | undefined;
  readonly limit: number | undefined;
  readonly types?: readonly string[] | undefined;
}

/** A page of events. `next` is the cursor of the following page; null on the last page. */
export interface AuditPage {
  readonly events: readonly AuditRow[];
  readonly next: string | null;
  /**
   * The time of the oldest event that the search checked. It is undefined unless the search stopped
   * before a page was full and before the end of the log.
   */
  readonly searchedTo: Date | undefined;
}

/**
 * An audit event with the other events of the same request. `members` has the ids of its actor and
 * its subject, if they are members of the organization today.
 */
export interface DescribedEvent {
  readonly event: AuditRow;
  readonly sameRequest: readonly AuditRow[];
  readonly members: ReadonlySet<string>;
}

/** The most events of the same HTTP request that the page about one event lists. */
const OF_ONE_REQUEST = 20;

/** The number of events on a page if the request has no `limit`. */
const USUAL_PAGE = 100;

/**
 * Reads the audit log of an organization for its admins and programs, the newest events first, or
 * in the order of the feed.
 */
@Injectable()
export class AuditEvents {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly clock: Clock,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * Returns one page of the events that match a search, the newest first.
   *
   * @throws DomainError admin_required, too_many
   */
  async page(
    reader: Reader,
    { search, after, limit = USUAL_PAGE }: AuditQuery,
  ): Promise<AuditPage> {
    return this.#read(reader, async (tx) => {
      const filter = await filterOf(tx, reader.orgId, search);
      const range = { after, limit: limit + 1 };
      return pageOf(await listAuditEvents(tx, reader.orgId, filter, range), limit);
    });
  }

  /**
   * Returns for how many milliseconds the oldest event that the feed does not show yet has waited;
   * 0 if none waits. An event waits while an older transaction is open.
   *
   * @throws DomainError admin_required
   */
  feedDelay(admin: Admin): Promise<number> {
    return this.#read(admin, (tx) => feedDelayOf(tx, admin.orgId));
  }

  /**
   * Counts the newest events that match a search, by kind and time; undefined if no event matches.
   *
   * @throws DomainError admin_required, too_many
   */
  async timeline(admin: Admin, search: AuditSearch): Promise<Timeline | undefined> {
    const size = { ...TIMELINE, now: this.clock.now() };
    const counts = await this.#read(admin, async (tx) => {
      const filter = await filterOf(tx, admin.orgId, search);
      return countTimeline(tx, admin.orgId, filter, size);
    });
    return timelineOf(counts, TIMELINE.sections);
  }

  /**
   * Returns one event of the organization with the other events of the same request.
   *
   * @throws DomainError admin_required, not_found
   */
  async describe(admin: Admin, id: string): Promise<DescribedEvent> {
    const { orgId } = admin;
    return this.#read(admin, async (tx) => {
      const event = isUuid(id) ? await findAuditEvent(tx, orgId, id.toLowerCase()) : undefined;
      if (!event) throw new DomainError('not_found', 'Your organization has no such event.');
      const people = [event.actorId, event.subjectId].filter((each) => each !== null);
      const members = await presentMembers(tx, orgId, people);
      if (event.requestId === null) return { event, members, sameRequest: [] };
      const range = { after: undefined, limit: OF_ONE_REQUEST };
      const filter = { requestId: event.requestId };
      const { rows } = await listAuditEvents(tx, orgId, filter, range);
      return { event, members, sameRequest: rows.filter((row) => row.id !== event.id) };
    });
  }

  /**
   * Reads all events that match a search, in batches. A batch is read after the client has taken
   * the previous batch, so that one batch at most is in memory.
   *
   * @returns the batches; the first one is read before the function returns, so that an error can
   *   still become the status code of the response
   */
  async batches(
    reader: Reader,
    { search, after, limit }: AuditQuery,
  ): Promise<AsyncGenerator<readonly AuditRow[]>> {
    const filter = await this.#read(reader, (tx) => filterOf(tx, reader.orgId, search));
    const range = { after, limit: limit ?? Number.POSITIVE_INFINITY };
    const first = await this.#batch(reader, filter, range);
    return this.#from(first, reader, filter, range);
  }

  async *#from(
    first: AuditFound,
    reader: Reader,
    filter: AuditFilter,
    range: AuditRange,
  ): AsyncGenerator<readonly AuditRow[]> {
    let batch = first;
    let left = range.limit;
    for (;;) {
      const { rows, end } = batch;
      if (rows.length > 0) yield rows;
      left -= rows.length;
      const after = rows.length === BATCH ? rows.at(-1)?.place : end;
      if (!after || left <= 0) return;
      batch = await this.#batch(reader, filter, { after, limit: left }, PATIENCE_DURING_RESPONSE);
    }
  }

  /**
   * Returns a page of the feed: the events after a position, in the order of the feed, each event
   * once. `next` is the cursor of the following page; it is set even if there are no further events
   * yet.
   *
   * If `types` is set, a page may be empty although more events follow. `next` then differs from
   * the cursor of the request.
   *
   * @throws DomainError admin_required, feed_restarted
   */
  async feed(
    reader: Reader,
    { after, limit = USUAL_PAGE, types }: FeedQuery,
  ): Promise<{ readonly events: readonly FeedRow[]; readonly next: string }> {
    const start = await this.#placeOf(reader, after);
    const events = await this.#feedAfter(reader, start, limit);
    const next = writeFeedCursor(events.at(-1)?.feedPlace ?? start);
    return { events: ofTypes(events, types), next };
  }

  #placeOf(reader: Reader, after: FeedQuery['after']): Promise<FeedPlace> {
    if (after !== LATEST) return Promise.resolve(after ?? FIRST_PLACE);
    return this.#read(reader, (tx) => endOfFeed(tx, reader.orgId));
  }

  /**
   * Reads the feed for a response with one event on each line. It stops at the present end of the
   * feed, or after the time that a response may take. Each batch is read after the client has taken
   * the previous one, and the first wanted event is found before the function returns.
   *
   * @param signal ends the reading, because the client has closed the connection
   * @throws DomainError admin_required, feed_restarted
   */
  async feedLines(
    reader: Reader,
    { after, limit = Number.POSITIVE_INFINITY, types }: FeedQuery,
    signal?: AbortSignal,
  ): Promise<FeedLines> {
    const start = await this.#placeOf(reader, after);
    const read = (place: FeedPlace, most: number, patience: number) =>
      this.#feedAfter(reader, place, most, patience);
    return readFeedLines(this.clock, read, { start, limit, types, signal });
  }

  /**
   * Reads the sealed export: the audit events with the leaves of the Merkle trees that prove them,
   * up to the last signed checkpoint. Returns batches of lines; the first batch is read before the
   * function returns.
   *
   * @throws DomainError admin_required
   */
  sealed(
    reader: Reader,
    from: SealedPlace = FIRST_LEAF,
  ): Promise<AsyncGenerator<readonly string[]>> {
    const { retentionDays } = this.config.cleanUp;
    const facts = { at: this.clock.now().toISOString(), retention: retentionDays };
    const read = <Found>(work: (tx: EntityManager) => Promise<Found>, patience?: number) =>
      this.#read(reader, work, patience);
    return sealedParts(read, reader.orgId, from, facts);
  }

  /**
   * Lists the signed checkpoints of the audit log after an epoch and a size, or only the newest
   * one. A checkpoint states the size and the root of a Merkle tree.
   *
   * @throws DomainError admin_required
   */
  checkpoints(
    admin: Admin,
    after: { readonly epoch: string; readonly size: number } | 'newest',
    limit = USUAL_PAGE,
  ): Promise<CheckpointPage> {
    return this.#read(admin, (tx) => readCheckpoints(tx, admin.orgId, after, limit));
  }

  /**
   * Returns the proof that the Merkle tree of an epoch only grew from the first size to the second.
   * It shows that no event in the smaller tree changed.
   *
   * @throws DomainError admin_required, not_found
   */
  consistency(
    admin: Admin,
    epoch: string,
    sizes: readonly [number, number],
  ): Promise<ConsistencyProof> {
    return this.#read(admin, (tx) => proveConsistency(tx, admin.orgId, epoch, sizes));
  }

  #feedAfter(
    reader: Reader,
    after: FeedPlace,
    limit: number,
    patience?: number,
  ): Promise<FeedRow[]> {
    const read = async (tx: EntityManager) => {
      const restart = await restartOfFeed(tx, reader.orgId, after);
      if (restart) {
        const detail =
          'The database never had the place of this cursor. Go on with the cursor of this answer.';
        throw new DomainError('feed_restarted', detail, { cursor: writeFeedCursor(restart) });
      }
      return listFeed(tx, reader.orgId, after, limit);
    };
    return this.#read(reader, read, patience);
  }

  #batch(
    reader: Reader,
    filter: AuditFilter,
    { after, limit }: AuditRange,
    patience?: number,
  ): Promise<AuditFound> {
    const range = { after, limit: Math.min(BATCH, limit) };
    const read = (tx: EntityManager) => listAuditEvents(tx, reader.orgId, filter, range);
    return this.#read(reader, read, patience);
  }

  /**
   * Runs a read of the log, after a check that the caller may still read. The read counts toward
   * the limit on the database connections and time of one organization.
   *
   * @throws DomainError admin_required, unauthenticated
   */
  #read<Found>(
    reader: Reader,
    work: (tx: EntityManager) => Promise<Found>,
    patience?: number,
  ): Promise<Found> {
    const read = async (tx: EntityManager) => {
      await checkReader(tx, this.members, reader);
      return work(tx);
    };
    return this.work.costly(reader.orgId, read, patience);
  }
}

function pageOf({ rows, end }: AuditFound, limit: number): AuditPage {
  const events = rows.slice(0, limit);
  const last = rows.length > limit ? events.at(-1)?.place : end;
  const searchedTo = rows.length > limit || !end ? undefined : new Date(end.at);
  return { events, next: last ? writeCursor(last) : null, searchedTo };
}

/**
 * Makes the filter of a search, and looks up the users that its texts name.
 *
 * @throws DomainError too_many for a text with which the names or e-mail addresses of more than 10
 *   users begin
 */
async function filterOf(
  tx: EntityManager,
  orgId: string,
  { people, ...search }: AuditSearch,
): Promise<AuditFilter> {
  const found: AuditPeople[] = [];
  for (const text of people) {
    const known = knownPerson(text);
    const ids = known ? [] : await peopleNamed(tx, orgId, text);
    if (ids.length > MOST_PEOPLE) {
      const detail = `More than ${MOST_PEOPLE} members have names or addresses that begin with this text. Write more of it.`;
      throw new DomainError('too_many', detail);
    }
    found.push(known ? await withPresentUsers(tx, orgId, known) : { ids, addresses: [] });
  }
  return { ...search, people: found };
}
