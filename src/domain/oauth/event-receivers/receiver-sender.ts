import { Logger } from '@nestjs/common';
import { restartOfFeed } from '#domain/audit/feed/audit-feed.repository.js';
import { findPlacedEvent, passEvents } from '#domain/audit/feed/wanted-events.repository.js';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import type { Config } from '#platform/config/config.js';
import { SpacedCalls } from '#platform/database/queues/spaced-calls.js';
import { OutboundRefused } from '#platform/outbound/outbound-http.service.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { REGISTERED_LIMITS, type LaneLimits } from '../notice-sending/fair-turns.js';
import { OwnFault } from '../notice-sending/failure-words.js';
import {
  NoticeSender,
  type Failure,
  type NoticeRequest,
  type SenderParts,
} from '../notice-sending/notice-sender.js';
import { Resealing } from '../notice-sending/resealing.js';
import { isOwnAddress } from './own-address.js';
import { otlpRejections, otlpRequest } from './otlp-request.js';
import {
  buryEvents,
  deliverEvents,
  FAILING_DAYS,
  hasReceivers,
  KIND_OF,
  isRefusal,
  listDueReceivers,
  passBy,
  postponeEvents,
  releaseEvents,
  removeLetter,
  takeReceivers,
  wantedTypes,
  type TakenEvents,
} from './receiver-queue.repository.js';
import { openOfReceiver, sealAgain } from './receiver-secrets.js';
import { webhookRequest, type ReceiverRequest } from './webhook-request.js';

/**
 * The limits for the requests of a replica that wait for a response. A receiver gets one request at
 * a time, because its events must arrive in order. Logout notices and signals have limits of their
 * own.
 */
const LIMITS: LaneLimits = { ...REGISTERED_LIMITS, ofClient: 1 };

/**
 * The most events that one statement goes through to find the wanted ones, for a receiver that
 * wants only some types.
 */
const SCANNED = 1_000;

/**
 * The fewest milliseconds between two reads of the queue that follow commits of this process. An
 * event must be sent within 100 ms of its commit if the queue is idle, so the wait and the read
 * together must take less.
 */
const NEWS = 50;

/** The statuses 200 to 299, by which a receiver accepts events. */
const TAKING: ReadonlySet<number> = new Set(Array.from({ length: 100 }, (_, n) => 200 + n));

/** The dependencies of {@link ReceiverSender}. */
export interface ReceiverSenderParts extends SenderParts {
  readonly secrets: Config['secrets'];
  /** The URL of this service, to which no event may be sent. */
  readonly baseUrl: string;
}

/**
 * Sends the audit log to receivers. A replica reads the log from the stored position of a receiver,
 * sends the next events, and moves the position. One replica at a time sends to a receiver.
 */
export class ReceiverSender implements BackgroundProvider {
  readonly #log = new Logger('receivers');
  readonly #security = new Logger('security');
  readonly #sender: NoticeSender<TakenEvents>;
  /**
   * The number of events that the next search for a receiver goes through, by the id of the
   * receiver. A receiver has an entry if its last search found no wanted event.
   */
  readonly #scanned = new Map<string, number>();
  #hasReceivers = false;
  readonly #news: SpacedCalls;

  constructor(private readonly parts: ReceiverSenderParts) {
    this.#news = new SpacedCalls(parts.clock, NEWS, () => this.#sender.wake());
    const { clock, dataSource, secrets } = parts;
    const resealing = new Resealing(clock, this.#log, () => sealAgain(dataSource.manager, secrets));
    this.#sender = new NoticeSender(parts, {
      channel: 'event_receivers',
      name: 'The queue of events to receivers',
      log: this.#log,
      lanes: [
        {
          limits: LIMITS,
          due: (tx) => this.#due(tx),
          dueOf: listDueReceivers,
          take: (tx, counts) => takeReceivers(tx, [...counts.keys()]),
        },
      ],
      taking: TAKING,
      tenantOf: ({ orgId }) => orgId,
      request: (taken) => this.#request(taken),
      remark: (taken, answer) => this.#remark(taken, answer),
      deliver: deliverEvents,
      isRefusal,
      remove: (tx, taken) => this.#remove(tx, taken),
      release: releaseEvents,
      postpone: postponeEvents,
      bury: (tx, taken, failure) => this.#bury(tx, taken, failure),
      beforeRead: () => resealing.runIfDue(),
    });
  }

  onApplicationBootstrap(): void {
    this.#sender.start();
  }

  /** Stops the sender, and waits for the requests that are already sent. */
  async stopWork(): Promise<void> {
    this.#news.stop();
    await this.#sender.stop();
  }

  /** Makes the sender read the queue at once, and not only at the next poll. */
  wake(): void {
    this.#sender.wake();
  }

  /**
   * Tells the sender that this process committed events. The sender reads the queue at once, but at
   * least {@link NEWS} milliseconds after the last such read. So a busy service does not read the
   * queue all the time. Nothing happens if there are no receivers.
   */
  noteEvents(): void {
    if (this.#hasReceivers) this.#news.note();
  }

  async #due(tx: EntityManager) {
    this.#hasReceivers = await hasReceivers(tx);
    return this.#hasReceivers ? listDueReceivers(tx) : [];
  }

  /**
   * Reads the events for a reserved receiver into `taken.events`.
   * @throws OwnFault if the read fails, so that the receiver is released and the try does not count
   */
  async #read(taken: TakenEvents): Promise<void> {
    const { letterEvent, clientId, orgId } = taken;
    const { manager } = this.parts.dataSource;
    try {
      if (letterEvent === null) return await this.#readNext(manager, taken);
      const event = await findPlacedEvent(manager, orgId, letterEvent);
      taken.events = event ? [event] : [];
    } catch (cause) {
      this.#scanned.delete(clientId);
      this.#log.warn(`The events of the receiver ${clientId} wait: ${reasonOf(cause)}`);
      throw new OwnFault('the events could not be read', { cause });
    }
  }

  /**
   * Reads the next events of a receiver. If the receiver wants only some types, the first search
   * covers few events, and each further one ten times as many. After a search of {@link SCANNED}
   * events without a wanted one, the receiver continues in its next turn.
   */
  async #readNext(tx: EntityManager, taken: TakenEvents): Promise<void> {
    const { orgId, clientId, batch } = taken;
    const types = wantedTypes(taken.types);
    const wanted = types && { types, receiverId: clientId };
    taken.end = await this.#placeOf(tx, taken);
    let most = wanted ? (this.#scanned.get(clientId) ?? batch) : batch;
    for (;;) {
      const range = { most, limit: batch };
      const { events, end, isFull } = await passEvents(tx, orgId, taken.end, range, wanted);
      taken.events = events;
      taken.end = end ?? taken.end;
      if (events.length > 0 || !isFull) break;
      if (most >= SCANNED) {
        this.#scanned.set(clientId, SCANNED);
        return;
      }
      most = Math.min(most * 10, SCANNED);
    }
    this.#scanned.delete(clientId);
  }

  /**
   * Releases a receiver to which nothing was sent. The receiver moves past unwanted events. A
   * repeated dead letter is deleted, because its event is not in the log any more.
   */
  #remove(tx: EntityManager, taken: TakenEvents): Promise<void> {
    return taken.letterId === null ? passBy(tx, taken, taken.end) : removeLetter(tx, taken);
  }

  /**
   * Returns the position in the log from which a receiver goes on. It differs from the stored one
   * if the database has lost events that the receiver already has, such as after a restored backup.
   */
  async #placeOf(tx: EntityManager, { clientId, orgId, place }: TakenEvents) {
    const restart = await restartOfFeed(tx, orgId, place);
    if (!restart) return place;
    this.#security.warn(
      { receiverId: clientId, orgId },
      'The database never had the place of an event receiver. The receiver goes on with what the database has',
    );
    return restart;
  }

  async #request(taken: TakenEvents): Promise<NoticeRequest | undefined> {
    const { secrets, baseUrl } = this.parts;
    await this.#read(taken);
    if (taken.events.length === 0) return undefined;
    if (isOwnAddress(new URL(taken.url), baseUrl)) throw new OutboundRefused('it is this service');
    const { headers, body } = await this.#content(taken);
    const { headerName, headerSealed } = taken;
    const own =
      headerName === null || headerSealed === null
        ? {}
        : { [headerName]: await openOfReceiver(secrets, headerSealed) };
    return { uri: taken.url, headers: { ...own, ...headers }, body };
  }

  async #content(taken: TakenEvents): Promise<ReceiverRequest> {
    const { kind, events, orgId, secretSealed, oldSecretSealed } = taken;
    if (kind === 'otlp') return otlpRequest(events, orgId);
    const [event] = events;
    if (!event) throw new Error('a webhook has one event');
    const sealed = [secretSealed, oldSecretSealed].filter((one) => one !== null);
    const opened = sealed.map((one) => openOfReceiver(this.parts.secrets, one));
    return webhookRequest(event, await Promise.all(opened), this.parts.clock.seconds());
  }

  async #remark(taken: TakenEvents, answer: Response): Promise<string | undefined> {
    const { kind, clientId, orgId } = taken;
    taken.rejected = kind === 'otlp' ? await otlpRejections(answer) : 0;
    if (taken.rejected === 0) return undefined;
    const remark = `${taken.rejected} events rejected`;
    const text = 'A receiver took a request, and rejected some of its events';
    this.#security.warn({ receiverId: clientId, orgId, remark }, text);
    return remark;
  }

  async #bury(tx: EntityManager, taken: TakenEvents, failure: Failure): Promise<void> {
    const buried = await buryEvents(tx, taken, failure);
    if (!buried) return;
    const { clientId, orgId, kind, events } = taken;
    const facts = { receiverId: clientId, orgId, kind: KIND_OF[kind], events: events.length };
    this.#security.warn(
      { ...facts, result: failure.result },
      buried.isPaused
        ? `A receiver took no event for ${FAILING_DAYS} days and is paused now`
        : 'A receiver did not take events, which are dead letters now',
    );
  }
}
