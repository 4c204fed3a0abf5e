import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { NotedAct } from '#domain/audit/noted-act.js';
import type { AuditLog } from '#domain/audit/audit.repository.js';
import {
  endOfFeed,
  FIRST_PLACE,
  restartOfFeed,
  type FeedPlace,
} from '#domain/audit/feed/audit-feed.repository.js';
import { writeFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import type { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { Config } from '#platform/config/config.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { isUuid } from '#platform/text/single-line.js';
import { isOwnAddress } from './own-address.js';
import { noticeFigures } from '../notice-figures/notice-figures.repository.js';
import { RECEIVER_QUEUES } from './receiver-queue.repository.js';
import { mintWebhookSecret, sealOfReceiver } from './receiver-secrets.js';
import {
  changeReceiver,
  deleteReceiver,
  findReceiverOf,
  insertReceiver,
  listReceivers,
  lockReceiver,
  noteTest,
  replaceSecret,
  wakeSenders,
  type EventReceiver,
  type ReceiverKind,
  type ReceiverStatus,
  type StoredSettings,
} from './receivers.repository.js';
import {
  dropUndelivered,
  listUndelivered,
  repeatUndelivered,
  type UndeliveredEvent,
} from './undelivered.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The most receivers that an organization can have. */
const MOST_RECEIVERS = 10;

/** The fewest seconds between two tests of a receiver. */
const TEST_INTERVAL = 10;

/** A header that each request to a receiver has, such as `Authorization`. */
export interface OwnHeader {
  readonly name: string;
  readonly value: string;
}

/** The properties that an admin chooses for a new receiver. */
export interface WantedReceiver {
  /** The name that admins see; by default the host of the URL. */
  readonly name?: string | undefined;
  readonly kind: ReceiverKind;
  readonly url: string;
  /**
   * The audit events that the receiver gets, by type or by a kind or group of types; null for every
   * event.
   */
  readonly types: readonly string[] | null;
  readonly header: OwnHeader | null;
  /** The position in the audit log after which the receiver begins. */
  readonly after: FeedPlace | 'latest' | 'beginning';
}

/** The properties that an admin changes. A missing property stays as it is. */
export interface ReceiverChange {
  readonly name?: string | undefined;
  readonly url?: string | undefined;
  readonly types?: readonly string[] | null | undefined;
  readonly header?: OwnHeader | null | undefined;
  readonly status?: ReceiverStatus | undefined;
}

/** The settings of a receiver that its page shows and admins change. */
export type SeenSettings = Pick<EventReceiver, 'name' | 'url' | 'types' | 'headerName' | 'status'>;

/**
 * Returns the settings that the page of a receiver shows, without other fields, such as the time of
 * the last request. The entity tag of the page is made from these settings.
 */
export function seenSettings({ name, url, types, headerName, status }: SeenSettings): SeenSettings {
  return { name, url, types, headerName, status };
}

/**
 * A new receiver with its signing secret, which no later request can read. The secret is null for
 * an OTLP receiver, which has none.
 */
export interface MadeReceiver {
  readonly receiver: EventReceiver;
  readonly secret: string | null;
}

/** A receiver with its statistics and its dead letters (events that it did not accept). */
export interface ReceiverState {
  readonly receiver: EventReceiver;
  /** The number of events that wait to be sent. The count stops at 1,000. */
  readonly waiting: number;
  readonly oldest: Date | null;
  /**
   * The number of events that the receiver accepted in the last 30 days. `failed` is the number of
   * events that it did not accept in these days.
   */
  readonly sent: number;
  readonly failed: number;
  readonly letters: readonly UndeliveredEvent[];
}

/** The dependencies of {@link EventReceivers}. */
export interface EventReceiverParts {
  readonly dataSource: DataSource;
  readonly members: Pick<Members, 'holdAdmin'>;
  readonly organizations: OrganizationsRepository;
  readonly audit: AuditLog;
  readonly outboundHttp: Pick<OutboundHttp, 'assertAllowed'>;
  readonly secrets: Config['secrets'];
  /** The URL of this service, to which no event may be sent. */
  readonly baseUrl: string;
}

/**
 * Shows and changes the event receivers of an organization, to which the service sends the audit
 * log, for its admins.
 */
export class EventReceivers {
  constructor(private readonly parts: EventReceiverParts) {}

  /** Lists the receivers of the organization, the newest first. */
  list({ orgId }: Admin): Promise<EventReceiver[]> {
    return listReceivers(this.parts.dataSource.manager, orgId);
  }

  /**
   * Returns a receiver with its statistics and its dead letters (events that it did not accept).
   * @throws DomainError not_found, also for a receiver of another organization
   */
  async show({ orgId }: Admin, id: string): Promise<ReceiverState> {
    const { manager } = this.parts.dataSource;
    const receiver = await found(manager, orgId, id);
    const figures = await noticeFigures(manager, RECEIVER_QUEUES, { clientId: receiver.id });
    const sum = (name: 'waiting' | 'sent' | 'failed') =>
      figures.reduce((total, one) => total + one[name], 0);
    return {
      receiver,
      waiting: sum('waiting'),
      oldest: figures.find(({ oldest }) => oldest !== null)?.oldest ?? null,
      sent: sum('sent'),
      failed: sum('failed'),
      letters: await listUndelivered(manager, receiver.id),
    };
  }

  /**
   * Creates a receiver, which gets the events after the position `wanted.after`. A webhook gets a
   * new signing secret.
   *
   * @throws DomainError admin_required, invalid_request, limit_reached, feed_restarted
   */
  async create(admin: Admin, wanted: WantedReceiver, origin: AuditOrigin): Promise<MadeReceiver> {
    const url = await this.#allowedAddress(wanted.kind, wanted.url);
    const secret = wanted.kind === 'webhook' ? mintWebhookSecret() : null;
    const secretSealed = secret === null ? null : await this.#seal(secret);
    const header = await this.#headerOf(wanted.header);
    const { orgId, id: createdBy } = admin;
    return this.#act(admin, async (tx) => {
      await assertBelowLimit(tx, orgId);
      const { name = new URL(url).host, kind, types } = wanted;
      const from = await placeOf(tx, orgId, wanted.after);
      const given = { orgId, kind, name, url, types, ...header, secretSealed, createdBy, from };
      const id = await insertReceiver(tx, given);
      const details = {
        ...named(id, name),
        ...addressOf(kind, url),
        types,
        header_name: header.headerName,
      };
      await this.#record(tx, 'event_receiver_created', admin, origin, details);
      return { receiver: await found(tx, orgId, id), secret };
    });
  }

  /**
   * Changes settings of a receiver, such as its URL, or pauses or resumes the receiver.
   *
   * @param check refuses the change by an error if the settings are not as the admin saw them
   * @throws DomainError admin_required, not_found, invalid_request
   */
  async change(
    admin: Admin,
    id: string,
    change: ReceiverChange,
    origin: AuditOrigin,
    check?: (current: SeenSettings) => void,
  ): Promise<EventReceiver> {
    const { orgId } = admin;
    const before = await found(this.parts.dataSource.manager, orgId, id);
    assertHeaderStaysHome(before, change);
    const { url: to } = change;
    const url = to === undefined ? undefined : await this.#allowedAddress(before.kind, to);
    const header = change.header === undefined ? undefined : await this.#headerOf(change.header);
    return this.#act(admin, async (tx) => {
      const current = await lockReceiver(tx, orgId, before.id);
      if (!current) throw noReceiver();
      check?.(seenSettings(current));
      assertHeaderStaysHome(current, change);
      const { name = current.name, types = current.types, status = current.status } = change;
      const kept = { headerName: current.headerName, headerSealed: current.headerSealed };
      const next = { name, types, status, url: url ?? current.url, ...(header ?? kept) };
      const changed = changedNames(current, next, header !== undefined);
      if (changed.length > 0) {
        const isResumed = current.status === 'paused' && next.status === 'enabled';
        const isVouched = isResumed || changed.includes('url') || changed.includes('header');
        await changeReceiver(tx, before.id, next, isVouched ? admin.id : undefined);
        const address = addressOf(current.kind, next.url);
        const details = { ...named(before.id, name), changed, ...address, types, status };
        await this.#record(tx, 'event_receiver_updated', admin, origin, details);
      }
      return found(tx, orgId, before.id);
    });
  }

  /**
   * Removes a receiver with its dead letters. If several requests remove it, one succeeds.
   * @throws DomainError admin_required, not_found
   */
  async remove(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.#act(admin, async (tx) => {
      const gone = isUuid(id) ? await deleteReceiver(tx, admin.orgId, id) : undefined;
      if (!gone) throw noReceiver();
      const receiverId = id.toLowerCase();
      const details = { ...named(receiverId, gone.name), ...addressOf(gone.kind, gone.url) };
      const act = {
        kind: 'receiver_removed',
        receiverId,
        orgId: admin.orgId,
        name: gone.name,
      } as const;
      await this.#record(tx, 'event_receiver_deleted', admin, origin, details, [act]);
    });
  }

  /**
   * Replaces the signing secret of a webhook. For `overlapHours` hours, requests are also signed
   * with the old secret.
   * @throws DomainError admin_required, not_found, invalid_request for a receiver of OTLP
   */
  async rotateSecret(
    admin: Admin,
    id: string,
    overlapHours: number,
    origin: AuditOrigin,
  ): Promise<MadeReceiver & { readonly secret: string }> {
    const secret = mintWebhookSecret();
    const sealed = await this.#seal(secret);
    return this.#act(admin, async (tx) => {
      const receiver = await found(tx, admin.orgId, id);
      const replaced = await replaceSecret(tx, admin.orgId, receiver.id, sealed, overlapHours);
      if (!replaced) {
        throw new DomainError('invalid_request', 'A receiver of OTLP has no signing secret.');
      }
      const until = replaced.until?.toISOString() ?? null;
      const details = { ...named(receiver.id, receiver.name), replaced_signs_until: until };
      await this.#record(tx, 'event_receiver_secret_rotated', admin, origin, details);
      return { receiver: await found(tx, admin.orgId, id), secret };
    });
  }

  /**
   * Tests a receiver: the audit event of the test is sent to it like any other event. The receiver
   * gets this event even if it does not want events of this type.
   *
   * @throws DomainError admin_required, not_found, rate_limited, invalid_request for a paused
   *   receiver
   */
  async test(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.#act(admin, async (tx) => {
      const receiver = await found(tx, admin.orgId, id);
      if (receiver.status === 'paused') {
        throw new DomainError('invalid_request', 'The receiver is paused. Enable it first.');
      }
      if (!(await noteTest(tx, receiver.id, TEST_INTERVAL))) {
        const detail = `A receiver can be tested once in ${TEST_INTERVAL} seconds.`;
        throw new DomainError('rate_limited', detail, { retryAfter: TEST_INTERVAL });
      }
      const details = named(receiver.id, receiver.name);
      await this.#record(tx, 'event_receiver_tested', admin, origin, details);
      await wakeSenders(tx);
    });
  }

  /**
   * Makes the service try for 24 hours more to send a dead letter (an event that was not accepted).
   * @throws DomainError admin_required, not_found
   */
  repeat(admin: Admin, id: string, letterId: string, origin: AuditOrigin): Promise<void> {
    return this.#settle(admin, { id, letterId, act: 'repeated' }, origin, repeatUndelivered);
  }

  /**
   * Deletes a dead letter (an event that was not accepted).
   *
   * @throws DomainError admin_required, not_found
   */
  drop(admin: Admin, id: string, letterId: string, origin: AuditOrigin): Promise<void> {
    return this.#settle(admin, { id, letterId, act: 'dropped' }, origin, dropUndelivered);
  }

  #settle(
    admin: Admin,
    { id, letterId, act }: { readonly id: string; readonly letterId: string; readonly act: string },
    origin: AuditOrigin,
    settle: (tx: EntityManager, receiverId: string, letterId: string) => Promise<boolean>,
  ): Promise<void> {
    return this.#act(admin, async (tx) => {
      const receiver = await found(tx, admin.orgId, id);
      const isThere = /^[1-9]\d{0,17}$/.test(letterId) && (await settle(tx, receiver.id, letterId));
      if (!isThere) throw new DomainError('not_found', 'The receiver has no such dead letter.');
      const changed = [`dead letter ${act}`];
      const details = { ...named(receiver.id, receiver.name), changed, letter_id: letterId };
      await this.#record(tx, 'event_receiver_updated', admin, origin, details);
    });
  }

  /**
   * Runs an act in a transaction that locks the admin and then the organization. So the acts on the
   * receivers of one organization run one after another.
   */
  #act<Done>(admin: Admin, act: (tx: EntityManager) => Promise<Done>): Promise<Done> {
    const { dataSource, members, organizations } = this.parts;
    return withTransactionRetry(dataSource, async (tx) => {
      await members.holdAdmin(tx, admin);
      await organizations.lockSettings(tx, admin.orgId);
      return act(tx);
    });
  }

  /**
   * Checks the URL of a receiver, and returns it. A URL of an OTLP server without a path gets the
   * path for logs. A URL of this service is refused, because it would cause an endless loop. Each
   * delivery would be recorded as an event, which is delivered again.
   *
   * @throws DomainError invalid_request for a URL that may not be called
   */
  async #allowedAddress(kind: ReceiverKind, text: string): Promise<string> {
    try {
      const url = new URL(text);
      if (kind === 'otlp' && url.pathname === '/') url.pathname = '/v1/logs';
      if (isOwnAddress(url, this.parts.baseUrl)) throw new Error('it is this service');
      await this.parts.outboundHttp.assertAllowed(url.href);
      return url.href;
    } catch (cause) {
      const detail = 'url: is not a URL that may be called';
      throw new DomainError('invalid_request', detail, { cause });
    }
  }

  async #headerOf(header: OwnHeader | null) {
    if (header === null) return { headerName: null, headerSealed: null };
    return { headerName: header.name, headerSealed: await this.#seal(header.value) };
  }

  #seal(text: string): Promise<string> {
    return sealOfReceiver(this.parts.secrets, text);
  }

  #record(
    tx: EntityManager,
    type: AuditType & `event_receiver_${string}`,
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    details: Readonly<Record<string, unknown>>,
    acts: readonly NotedAct[] = [],
  ): Promise<void> {
    const about = { actorId, subjectId: null, orgId, origin };
    return this.parts.audit.record(tx, { type, ...about, details, acts });
  }
}

/**
 * Finds a receiver by its id.
 *
 * @throws DomainError not_found if the organization has no such one
 */
async function found(tx: EntityManager, orgId: string, id: string): Promise<EventReceiver> {
  const receiver = isUuid(id) ? await findReceiverOf(tx, orgId, id) : undefined;
  if (!receiver) throw noReceiver();
  return receiver;
}

async function assertBelowLimit(tx: EntityManager, orgId: string): Promise<void> {
  if ((await listReceivers(tx, orgId)).length < MOST_RECEIVERS) return;
  throw new DomainError(
    'limit_reached',
    `An organization can have ${MOST_RECEIVERS} event receivers. Remove one that is not needed first.`,
  );
}

/**
 * Refuses a change of the URL to another origin that keeps the stored header. The value of the
 * header is secret even to admins, and the new host would receive it.
 *
 * @throws DomainError invalid_request
 */
function assertHeaderStaysHome(
  { url, headerName }: Pick<StoredSettings, 'url' | 'headerName'>,
  change: ReceiverChange,
): void {
  if (headerName === null || change.header !== undefined || change.url === undefined) return;
  if (URL.parse(change.url)?.origin === new URL(url).origin) return;
  const detail = 'header_name: give the header again, or null, because the url has another host';
  throw new DomainError('invalid_request', detail);
}

/**
 * Returns the position in the audit log after which a new receiver begins.
 *
 * @throws DomainError feed_restarted for a cursor whose position this database never had, such as
 *   after the restore of a backup
 */
async function placeOf(
  tx: EntityManager,
  orgId: string,
  after: WantedReceiver['after'],
): Promise<FeedPlace> {
  if (after === 'latest') return endOfFeed(tx, orgId);
  if (after === 'beginning') return FIRST_PLACE;
  const restart = await restartOfFeed(tx, orgId, after);
  if (!restart) return after;
  throw new DomainError(
    'feed_restarted',
    'The database never had the place of this cursor. Begin at the cursor of this answer.',
    { cursor: writeFeedCursor(restart) },
  );
}

function named(id: string, name: string) {
  return { receiver_id: id, name };
}

/**
 * Describes the URL of a receiver for the audit log. The event has only the host, because other
 * receivers get the log too, and a path or a query may contain a secret.
 */
function addressOf(kind: ReceiverKind, url: string) {
  return { kind, host: new URL(url).host };
}

function changedNames(before: StoredSettings, after: StoredSettings, hasHeader: boolean): string[] {
  const names = (['name', 'url', 'status'] as const).filter((name) => before[name] !== after[name]);
  const types = JSON.stringify(before.types) === JSON.stringify(after.types) ? [] : ['types'];
  return [...names, ...types, ...(hasHeader ? ['header'] : [])];
}

function noReceiver(): DomainError {
  return new DomainError('not_found', 'Your organization has no such event receiver.');
}
