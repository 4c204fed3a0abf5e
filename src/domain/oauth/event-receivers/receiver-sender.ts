import { Logger } from '@nestjs/common';
import { restartOfFeed } from '#domain/audit/feed/audit-feed.repository.js';
import { findPlacedEvent, passEvents } from '#domain/audit/feed/wanted-events.repository.js';
import type { Config } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { REGISTERED_LIMITS, type LaneLimits } from '../notice-sending/fair-turns.js';
import {
  NoticeSender,
  type Failure,
  type NoticeRequest,
  type SenderParts,
} from '../notice-sending/notice-sender.js';
import { otlpRemark, otlpRequest } from './otlp-request.js';
import {
  buryEvents,
  deliverEvents,
  FAILING_DAYS,
  hasReceivers,
  KIND_OF,
  listDueReceivers,
  passBy,
  postponeEvents,
  removeLetter,
  takeReceivers,
  wantedTypes,
  type TakenEvents,
  type TakenReceiver,
} from './receiver-queue.repository.js';
import { openOfReceiver } from './receiver-secrets.js';
import { webhookRequest, type ReceiverRequest } from './webhook-request.js';

/**
 * The limits of the requests of a replica. A receiver has one request at a time, because its events
 * come in order. Logout notices and signals have limits of their own.
 */
const LIMITS: LaneLimits = { ...REGISTERED_LIMITS, ofClient: 1 };

/** The most events of the log that one statement goes through for a receiver of some types. */
const SCANNED = 1_000;

/** The most such statements before other receivers have a turn. */
const SCANS = 5;

/** The milliseconds between two looks for receivers after events were committed here. */
const NEWS = 500;

/** Every status of success, by which a receiver takes events. */
const TAKING: ReadonlySet<number> = new Set(Array.from({ length: 100 }, (_, n) => 200 + n));

/** The parts of the service that the sender of events needs. */
export interface ReceiverSenderParts extends SenderParts {
  readonly secrets: Config['secrets'];
}

/**
 * Sends the audit log to receivers: each replica reads the log from the place of a receiver, sends
 * the next events, and moves the place. One replica at a time sends to a receiver.
 */
export class ReceiverSender {
  readonly #log = new Logger('receivers');
  readonly #security = new Logger('security');
  readonly #sender: NoticeSender<TakenEvents>;
  #hasReceivers = false;
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: ReceiverSenderParts) {
    this.#sender = new NoticeSender(parts, {
      channel: 'event_receivers',
      name: 'The queue of events to receivers',
      log: this.#log,
      lanes: [
        {
          limits: LIMITS,
          due: (tx) => this.#due(tx),
          take: (tx, counts) => this.#take(tx, [...counts.keys()]),
        },
      ],
      taking: TAKING,
      tenantOf: ({ orgId }) => orgId,
      request: (taken) => this.#request(taken),
      remark: (taken, answer) => this.#remark(taken, answer),
      deliver: deliverEvents,
      remove: removeLetter,
      postpone: postponeEvents,
      bury: (tx, taken, failure) => this.#bury(tx, taken, failure),
    });
  }

  onApplicationBootstrap(): void {
    this.#sender.start();
  }

  /** Stops the sender, and waits for the requests that are already sent. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#sender.stop();
  }

  /** Makes the sender look for events at once. */
  wake(): void {
    this.#sender.wake();
  }

  /**
   * Hears that this process committed events. The sender looks for them at once, but not more often
   * than twice a second, so that a busy service does not look all the time. Without receivers
   * nothing happens.
   */
  noteEvents(): void {
    if (!this.#hasReceivers) return;
    const now = this.parts.clock.monotonic();
    if (now - this.#heardAt < NEWS) return;
    this.#heardAt = now;
    this.#sender.wake();
  }

  async #due(tx: EntityManager) {
    this.#hasReceivers = await hasReceivers(tx);
    return this.#hasReceivers ? listDueReceivers(tx) : [];
  }

  /** Reserves receivers, and reads the events that are sent to each of them. */
  async #take(tx: EntityManager, ids: readonly string[]): Promise<TakenEvents[]> {
    const taken: TakenEvents[] = [];
    for (const receiver of await takeReceivers(tx, ids)) {
      const one = await this.#eventsOf(tx, receiver);
      if (one) taken.push(one);
    }
    return taken;
  }

  /**
   * Reads the events for a reserved receiver. After a fault the receiver waits for the end of its
   * lease, and the other receivers go on.
   */
  async #eventsOf(tx: EntityManager, receiver: TakenReceiver): Promise<TakenEvents | undefined> {
    const { letterEvent, clientId } = receiver;
    try {
      if (letterEvent !== null) return await this.#letter(tx, receiver, letterEvent);
      return await this.#next(tx, receiver);
    } catch (error) {
      this.#log.warn(`The events of the receiver ${clientId} wait: ${reasonOf(error)}`);
      return undefined;
    }
  }

  async #letter(tx: EntityManager, receiver: TakenReceiver, id: string): Promise<TakenEvents> {
    const event = await findPlacedEvent(tx, receiver.orgId, id);
    return { ...receiver, id, events: event ? [event] : [], end: receiver.place };
  }

  /**
   * Reads the next events of a receiver. If there are none, the receiver is released, and its place
   * is after the events that it does not want.
   */
  async #next(tx: EntityManager, receiver: TakenReceiver): Promise<TakenEvents | undefined> {
    const { orgId, clientId, batch } = receiver;
    const types = wantedTypes(receiver.types);
    const wanted = types && { types, receiverId: clientId };
    let place = await this.#placeOf(tx, receiver);
    for (let scan = 0; scan < SCANS; scan += 1) {
      const most = wanted ? SCANNED : batch;
      const { events, end = place, isFull } = await passEvents(tx, orgId, place, most, wanted);
      const sent = events.slice(0, batch);
      const last = sent.at(-1);
      if (last) {
        const isCut = events.length > sent.length;
        return { ...receiver, id: last.id, events: sent, end: isCut ? last.feedPlace : end };
      }
      place = end;
      if (!isFull) break;
    }
    await passBy(tx, receiver, place);
    return undefined;
  }

  /**
   * Returns the place from which a receiver goes on. It is not the stored one if events were lost
   * that the receiver has got, or if a copy of another time was restored.
   */
  async #placeOf(tx: EntityManager, { clientId, orgId, place }: TakenReceiver) {
    const restart = await restartOfFeed(tx, orgId, place);
    if (!restart) return place;
    this.#security.warn(
      { receiverId: clientId, orgId },
      'The database never had the place of an event receiver. The receiver goes on with what the database has',
    );
    return restart;
  }

  async #request(taken: TakenEvents): Promise<NoticeRequest | undefined> {
    if (taken.events.length === 0) return undefined;
    const { secrets } = this.parts;
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

  async #remark({ kind, clientId, orgId }: TakenEvents, answer: Response) {
    const remark = kind === 'otlp' ? await otlpRemark(answer) : undefined;
    if (remark !== undefined) {
      const text = 'A receiver took a request, and rejected some of its events';
      this.#security.warn({ receiverId: clientId, orgId, remark }, text);
    }
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
