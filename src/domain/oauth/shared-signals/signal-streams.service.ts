import { Inject, Injectable } from '@nestjs/common';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { holdReceiverToken } from './receivers.repository.js';
import { deliveredEvents } from './security-event.js';
import { SignalTokens } from './signal-tokens.service.js';
import { addSubject, removeSubject, type NamedPerson } from './stream-subjects.repository.js';
import {
  deleteStream,
  findStream,
  insertStream,
  lockStream,
  queueVerification,
  setStreamStatus,
  updateStream,
  type SignalStream,
  type StreamCaller,
  type StreamStatus,
} from './streams.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The fewest seconds between two verification events that a receiver may ask for. */
export const VERIFICATION_INTERVAL = 60;

/** The settings of a stream as its receiver sends them. */
export interface WantedSettings {
  readonly delivery:
    | { readonly method: 'poll' }
    | {
        readonly method: 'push';
        readonly endpointUrl: string;
        /**
         * The value of the Authorization header that the service sends to the receiver with each
         * event.
         */
        readonly authorization: string | undefined;
      };
  readonly eventsRequested: readonly string[] | null;
  readonly description: string | null;
}

/** The settings of a stream after a change by its receiver. */
export interface ChangedSettings extends WantedSettings {
  /**
   * True if the delivery method, the URL and the Authorization header stay as they are, because the
   * receiver does not change them.
   */
  readonly keepsDelivery: boolean;
}

/**
 * A request of a receiver about its stream, with the application and the origin for the audit log.
 */
export interface StreamRequest {
  readonly owner: StreamCaller;
  readonly streamId: string;
  readonly origin: AuditOrigin;
}

/**
 * Creates, changes and deletes the stream of security events of an application. The receiver, which
 * is the program of the application, sends these requests itself.
 */
@Injectable()
export class SignalStreams {
  readonly #issuer: string;

  constructor(
    @Inject(CONFIG) { http }: Pick<Config, 'http'>,
    private readonly dataSource: DataSource,
    private readonly signalTokens: SignalTokens,
    private readonly outboundHttp: OutboundHttp,
    private readonly auditLog: AuditLog,
  ) {
    this.#issuer = http.baseUrl;
  }

  /**
   * Creates the stream of security events of an application.
   *
   * @throws DomainError uniqueness, invalid_request, unauthenticated
   */
  async create(
    owner: StreamCaller,
    wanted: WantedSettings,
    origin: AuditOrigin,
  ): Promise<SignalStream> {
    const settings = await this.#settingsOf(wanted);
    const events = deliveredEvents(wanted.eventsRequested);
    return this.#change(owner, async (tx) => {
      const stream = await insertStream(tx, owner, settings, events);
      if (!stream) {
        throw new DomainError('uniqueness', 'The application has a stream. Delete it first.');
      }
      await this.#record(tx, owner, origin, 'signal stream created', addressOf(stream));
      return stream;
    });
  }

  /** Finds the stream of an application; undefined if it has none. */
  find(owner: StreamCaller): Promise<SignalStream | undefined> {
    return findStream(this.dataSource.manager, owner);
  }

  /**
   * Finds a stream by its id.
   *
   * @throws DomainError not_found if it is not a stream of this application
   */
  async get(owner: StreamCaller, streamId: string): Promise<SignalStream> {
    return known(await this.find(owner), streamId);
  }

  /**
   * Changes the settings of a stream. If the receiver does not change the delivery, the URL and its
   * Authorization header stay as they are. This holds even if another request has just changed
   * them.
   *
   * @param change a function from the present stream to its new settings; it is called again under
   *   the lock, because the stream may have changed
   * @throws DomainError not_found, invalid_request, unauthenticated
   */
  async update(
    { owner, streamId, origin }: StreamRequest,
    change: (current: SignalStream) => ChangedSettings,
  ): Promise<SignalStream> {
    const settings = await this.#settingsOf(change(await this.get(owner, streamId)));
    return this.#change(owner, async (tx) => {
      const current = known(await lockStream(tx, owner), streamId);
      const { keepsDelivery, eventsRequested, description } = change(current);
      const { method, endpointUrl, authorizationSealed } = keepsDelivery ? current : settings;
      const delivery = { method, endpointUrl, authorizationSealed };
      const changed = { ...delivery, eventsRequested, description };
      const events = deliveredEvents(eventsRequested);
      const stream = known(await updateStream(tx, streamId, changed, events), streamId);
      await this.#record(tx, owner, origin, 'signal stream changed', addressOf(stream));
      return stream;
    });
  }

  /**
   * Changes the state of a stream, such as from enabled to paused.
   *
   * @throws DomainError not_found, unauthenticated
   */
  setStatus(
    { owner, streamId, origin }: StreamRequest,
    status: StreamStatus,
    reason: string | null,
  ): Promise<void> {
    return this.#change(owner, async (tx) => {
      known(await lockStream(tx, owner), streamId);
      await setStreamStatus(tx, streamId, status, reason);
      await this.#record(tx, owner, origin, `signal stream ${status}`, {});
    });
  }

  /**
   * Deletes a stream. Its events that are not sent yet are never sent, and a clean-up deletes them
   * later.
   *
   * @throws DomainError not_found, unauthenticated
   */
  remove({ owner, streamId, origin }: StreamRequest): Promise<void> {
    return this.#change(owner, async (tx) => {
      known(await lockStream(tx, owner), streamId);
      await deleteStream(tx, streamId);
      await this.#record(tx, owner, origin, 'signal stream deleted', {});
    });
  }

  /**
   * Queues a verification event, by which a receiver tests its stream.
   *
   * @throws DomainError not_found, rate_limited, unauthenticated
   */
  async verify(owner: StreamCaller, streamId: string, state: string | undefined): Promise<void> {
    const isQueued = await this.#change(owner, async (tx) => {
      known(await findStream(tx, owner), streamId);
      return queueVerification(tx, streamId, state, VERIFICATION_INTERVAL);
    });
    if (isQueued) return;
    throw new DomainError('rate_limited', 'A stream can be verified once a minute.', {
      retryAfter: VERIFICATION_INTERVAL,
    });
  }

  /**
   * Adds a person to a stream, or removes a person from it. The call also succeeds for a person who
   * does not exist, so that a receiver cannot find out which people exist.
   *
   * @throws DomainError not_found, unauthenticated
   */
  setSubject(
    { owner, streamId, origin }: StreamRequest,
    person: NamedPerson,
    isAdded: boolean,
  ): Promise<void> {
    return this.#change(owner, async (tx) => {
      known(await lockStream(tx, owner), streamId);
      const act = isAdded ? addSubject : removeSubject;
      const userId = await act(tx, streamId, owner.orgId, person);
      if (userId === undefined) return;
      const words = `signal stream: person ${isAdded ? 'added' : 'removed'}`;
      await this.#record(tx, owner, origin, words, { sub: userId });
    });
  }

  /** The issuer (`iss`) of the security event tokens: the URL of this service. */
  get issuer(): string {
    return this.#issuer;
  }

  /**
   * Runs a change in a transaction that first locks the token of the request. So the token cannot
   * be ended before the transaction has.
   *
   * @throws DomainError unauthenticated if the token has ended since the request came
   */
  #change<Result>(
    caller: StreamCaller,
    act: (tx: EntityManager) => Promise<Result>,
  ): Promise<Result> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await assertTokenHeld(tx, caller);
      return act(tx);
    });
  }

  /**
   * Checks the settings, and encrypts the Authorization header.
   *
   * @throws DomainError invalid_request for a URL that may not be called
   */
  async #settingsOf({ delivery, eventsRequested, description }: WantedSettings) {
    const rest = { eventsRequested, description };
    if (delivery.method === 'poll') {
      return { method: 'poll', endpointUrl: null, authorizationSealed: null, ...rest } as const;
    }
    const { endpointUrl, authorization } = delivery;
    try {
      await this.outboundHttp.assertAllowed(endpointUrl);
    } catch (cause) {
      const detail = 'delivery.endpoint_url: is not a URL that may be called';
      throw new DomainError('invalid_request', detail, { cause });
    }
    const authorizationSealed =
      authorization === undefined ? null : await this.signalTokens.sealHeader(authorization);
    return { method: 'push', endpointUrl, authorizationSealed, ...rest } as const;
  }

  async #record(
    tx: EntityManager,
    { clientId, orgId }: StreamCaller,
    origin: AuditOrigin,
    act: string,
    details: object,
  ): Promise<void> {
    await this.auditLog.record(tx, {
      type: 'oauth_client_updated',
      actorId: null,
      subjectId: null,
      orgId,
      origin,
      details: { client_id: clientId, changed: [act], ...details },
    });
  }
}

/**
 * Locks the token of a request about a stream, so that it does not end until the transaction does.
 * The token was found before the body of the request was read, and may have ended since then.
 *
 * @throws DomainError unauthenticated if the token has ended
 */
export async function assertTokenHeld(tx: EntityManager, caller: StreamCaller): Promise<void> {
  if (await holdReceiverToken(tx, caller)) return;
  const { challenge } = caller;
  throw new DomainError('unauthenticated', 'The access token has ended.', { challenge });
}

/**
 * Returns the stream if it has the id.
 *
 * @throws DomainError not_found otherwise
 */
function known(stream: SignalStream | undefined, streamId: string): SignalStream {
  if (stream?.id !== streamId.toLowerCase()) {
    throw new DomainError('not_found', 'There is no such stream.');
  }
  return stream;
}

/**
 * Returns the delivery method and the host of a stream, for the audit log. The path and the query
 * of the URL are left out, because they may contain a secret.
 */
function addressOf({ method, endpointUrl }: SignalStream): object {
  return { method, ...(endpointUrl !== null && { host: new URL(endpointUrl).host }) };
}
