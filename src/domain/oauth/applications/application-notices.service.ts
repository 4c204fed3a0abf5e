import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  dropDeadLetter,
  noticesOfClient,
  repeatDeadLetter,
  type NoticesOfClient,
} from '../logout-notices/dead-letters.repository.js';
import { noticeFigures, type NoticeFigures } from '../notice-figures/notice-figures.repository.js';
import { NOTICE_QUEUES } from '../notice-watch/notice-queues.js';
import {
  dropDeadSignal,
  repeatDeadSignal,
  signalsOfClient,
  type SignalsOfClient,
} from '../shared-signals/dead-signals.repository.js';
import {
  allowReceiver,
  findReceiver,
  signalsResource,
  withdrawReceiver,
  type SignalReceiver,
  type SubjectFormat,
} from '../shared-signals/receivers.repository.js';
import { findStream, type SignalStream } from '../shared-signals/streams.repository.js';
import type { ApplicationManager, ClientApplication } from './applications.repository.js';
import { ManagedApplications, type ApplicationChange } from './managed-applications.service.js';
import { registrationOf } from './registration-metadata.js';

/**
 * The permission of an application to receive signals (security events of OpenID Shared Signals).
 * It comes with the stream of the application, the dead letters, and the number of signals that are
 * not sent yet.
 */
export interface ApplicationSignalsState extends SignalsOfClient {
  /** Undefined for an application that no admin allowed to receive signals. */
  readonly receiver: SignalReceiver | undefined;
  readonly stream: SignalStream | undefined;
}

/**
 * Shows the logout notices and the signals (security events) of an application, and repeats or
 * drops those that could not be sent (dead letters). The admins of its organization may see the
 * notices; without an organization, the owner may. Only admins may see the signals, and allow the
 * application to receive them.
 */
@Injectable()
export class ApplicationNotices {
  readonly #resource: string;

  constructor(
    @Inject(CONFIG) { http }: Pick<Config, 'http'>,
    private readonly managedApplications: ManagedApplications,
  ) {
    this.#resource = signalsResource(http.baseUrl);
  }

  /**
   * Lists the logout notices that could not be sent to an application (dead letters), with the
   * statistics of its notices.
   *
   * @throws DomainError not_found, admin_required
   */
  async list(manager: ApplicationManager, id: string): Promise<NoticesOfClient> {
    const application = await this.managedApplications.find(manager, id);
    assertMaySee(manager);
    return this.managedApplications.read((tx) => noticesOfClient(tx, application.id));
  }

  /**
   * Reads the statistics of the notices to the applications of an organization. Each kind of
   * notice, such as logout notices, has one entry, which counts all applications together.
   */
  async figures(orgId: string): Promise<readonly NoticeFigures[]> {
    const figures = await this.managedApplications.read((tx) =>
      noticeFigures(tx, NOTICE_QUEUES, { orgId }),
    );
    return figures.filter(({ isSelfRegistered }) => !isSelfRegistered);
  }

  /**
   * Puts a logout notice that could not be sent (a dead letter) back into the queue. The service
   * then tries to send it for 24 hours more.
   *
   * @throws DomainError not_found, admin_required
   */
  repeat(manager: ApplicationManager, id: string, noticeId: string, origin: AuditOrigin) {
    return this.#settle(manager, { id, noticeId, origin, act: 'repeated' }, (tx) =>
      repeatDeadLetter(tx, id, noticeId),
    );
  }

  /**
   * Deletes a logout notice that could not be sent (a dead letter).
   *
   * @throws DomainError not_found, admin_required
   */
  drop(manager: ApplicationManager, id: string, noticeId: string, origin: AuditOrigin) {
    return this.#settle(manager, { id, noticeId, origin, act: 'dropped' }, (tx) =>
      dropDeadLetter(tx, id, noticeId),
    );
  }

  /**
   * Shows the stream of security events (OpenID Shared Signals) of an application, with the events
   * that could not be sent.
   *
   * @throws DomainError not_found, admin_required
   */
  async showSignals(manager: ApplicationManager, id: string): Promise<ApplicationSignalsState> {
    const application = await this.managedApplications.find(manager, id);
    assertMaySeeSignals(manager);
    return this.managedApplications.read((tx) => signalsOf(tx, application));
  }

  /**
   * Allows an application of the organization to have a stream of security events (OpenID Shared
   * Signals).
   *
   * @throws DomainError not_found, admin_required, invalid_request
   */
  allowSignals(
    manager: ApplicationManager,
    id: string,
    subjectFormat: SubjectFormat,
    origin: AuditOrigin,
  ): Promise<ApplicationSignalsState> {
    return this.#changeSignals(manager, id, origin, async (tx, application) => {
      if (!mayReceive(application)) {
        throw new DomainError(
          'invalid_request',
          'Only a web application or a service of an organization can receive signals.',
        );
      }
      await allowReceiver(tx, id, subjectFormat, manager.userId);
      return { details: { changed: ['signals'], signals: subjectFormat } };
    });
  }

  /**
   * Ends the permission of an application to receive security events (OpenID Shared Signals), with
   * its stream and its tokens for the stream.
   *
   * @throws DomainError not_found, admin_required
   */
  withdrawSignals(manager: ApplicationManager, id: string, origin: AuditOrigin) {
    const resource = this.#resource;
    return this.#changeSignals(manager, id, origin, async (tx, { orgId }) => {
      if (!(await withdrawReceiver(tx, id, resource))) throw noSignal();
      const withdrawal = { kind: 'signals_withdrawn', clientId: id, orgId, resource } as const;
      return { details: { changed: ['signals'], signals: null }, acts: [withdrawal] };
    });
  }

  /**
   * Puts a security event that could not be sent (a dead letter) back into the queue of the stream.
   * The service then tries to send it for another day.
   *
   * @throws DomainError not_found, admin_required
   */
  repeatSignal(manager: ApplicationManager, id: string, signalId: string, origin: AuditOrigin) {
    return this.#changeSignals(manager, id, origin, async (tx) => {
      if (!isRowId(signalId) || !(await repeatDeadSignal(tx, id, signalId))) throw noSignal();
      return { details: { changed: ['signal repeated'], signal_id: signalId } };
    });
  }

  /**
   * Deletes a security event that could not be sent to the stream.
   *
   * @throws DomainError not_found, admin_required
   */
  dropSignal(manager: ApplicationManager, id: string, signalId: string, origin: AuditOrigin) {
    return this.#changeSignals(manager, id, origin, async (tx) => {
      if (!isRowId(signalId) || !(await dropDeadSignal(tx, id, signalId))) throw noSignal();
      return { details: { changed: ['signal dropped'], signal_id: signalId } };
    });
  }

  async #settle(
    manager: ApplicationManager,
    { id, noticeId, origin, act }: DeadLetterAct,
    settle: (tx: EntityManager) => Promise<boolean>,
  ): Promise<void> {
    await this.managedApplications.change(manager, id, async (tx, application, current) => {
      assertMaySee(current);
      const isThere = isRowId(noticeId) && (await settle(tx));
      if (!isThere) {
        throw new DomainError('not_found', 'The application has no such dead letter.');
      }
      const type = 'oauth_client_updated';
      const details = { changed: [`logout notice ${act}`], notice_id: noticeId };
      await this.managedApplications.record(tx, { type, manager, application, origin, details });
    });
  }

  /** Locks an application, runs an act of an admin on it, and records the act in the audit log. */
  #changeSignals(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
    act: (
      tx: EntityManager,
      application: ClientApplication,
    ) => Promise<Pick<ApplicationChange, 'details' | 'acts'>>,
  ): Promise<ApplicationSignalsState> {
    return this.managedApplications.change(manager, id, async (tx, application, current) => {
      assertMaySeeSignals(current);
      const change = await act(tx, application);
      const type = 'oauth_client_updated';
      await this.managedApplications.record(tx, { type, manager, application, origin, ...change });
      return signalsOf(tx, application);
    });
  }
}

/** An act of an admin on a logout notice that could not be sent (a dead letter). */
interface DeadLetterAct {
  readonly id: string;
  readonly noticeId: string;
  readonly origin: AuditOrigin;
  readonly act: 'repeated' | 'dropped';
}

function assertMaySee({ isAdmin, orgId }: ApplicationManager): void {
  if (isAdmin || orgId === null) return;
  throw new DomainError('admin_required', 'Only an admin sees the notices of an application.');
}

async function signalsOf(
  tx: EntityManager,
  { id, orgId }: ClientApplication,
): Promise<ApplicationSignalsState> {
  const receiver = await findReceiver(tx, id);
  const stream = orgId === null ? undefined : await findStream(tx, { clientId: id, orgId });
  return { receiver, stream, ...(await signalsOfClient(tx, id)) };
}

/**
 * Returns true if an application can receive security events. A public client (auth method `none`)
 * cannot, because it gets no access token for itself.
 */
function mayReceive({ orgId, resource, metadata }: ClientApplication): boolean {
  return orgId !== null && resource === null && registrationOf(metadata).auth_method !== 'none';
}

function isRowId(id: string): boolean {
  return /^[1-9]\d{0,17}$/.test(id);
}

function noSignal(): DomainError {
  return new DomainError('not_found', 'The application has no such signal or permission.');
}

function assertMaySeeSignals({ isAdmin }: ApplicationManager): void {
  if (isAdmin) return;
  throw new DomainError('admin_required', 'Only an admin sees the signals of an application.');
}
