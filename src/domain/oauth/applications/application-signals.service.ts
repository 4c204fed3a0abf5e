import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
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
import { registrationOf } from './registration-metadata.js';
import { ManagedApplications } from './managed-applications.service.js';

/** The permission of an application to receive signals, with its stream and what waits there. */
export interface ApplicationSignalsState extends SignalsOfClient {
  /** Undefined for an application that no admin allowed. */
  readonly receiver: SignalReceiver | undefined;
  readonly stream: SignalStream | undefined;
}

/** Lets admins allow an application to receive signals, and shows what its stream did not take. */
@Injectable()
export class ApplicationSignals {
  readonly #resource: string;

  constructor(
    @Inject(CONFIG) { http }: Pick<Config, 'http'>,
    private readonly managedApplications: ManagedApplications,
  ) {
    this.#resource = signalsResource(http.baseUrl);
  }

  /** Shows the stream of an application. @throws DomainError not_found, admin_required */
  async show(manager: ApplicationManager, id: string): Promise<ApplicationSignalsState> {
    const application = await this.managedApplications.find(manager, id);
    assertAdmin(manager);
    return this.managedApplications.read((tx) => stateOf(tx, application));
  }

  /**
   * Allows an application of the organization to have a stream. @throws DomainError not_found,
   * admin_required, invalid_request
   */
  allow(
    manager: ApplicationManager,
    id: string,
    subjectFormat: SubjectFormat,
    origin: AuditOrigin,
  ): Promise<ApplicationSignalsState> {
    return this.#change(manager, id, origin, async (tx, application) => {
      if (!mayReceive(application)) {
        throw new DomainError(
          'invalid_request',
          'Only a web application or a service of an organization can receive signals.',
        );
      }
      await allowReceiver(tx, id, subjectFormat, manager.userId);
      return { changed: ['signals'], signals: subjectFormat };
    });
  }

  /**
   * Ends the permission of an application, its stream and its tokens for signals. @throws
   * DomainError not_found, admin_required
   */
  withdraw(manager: ApplicationManager, id: string, origin: AuditOrigin) {
    return this.#change(manager, id, origin, async (tx) => {
      if (!(await withdrawReceiver(tx, id, this.#resource))) throw notFound();
      return { changed: ['signals'], signals: null };
    });
  }

  /** Sends a dead letter again, for another day. @throws DomainError not_found, admin_required */
  repeat(manager: ApplicationManager, id: string, signalId: string, origin: AuditOrigin) {
    return this.#change(manager, id, origin, async (tx) => {
      if (!isRowId(signalId) || !(await repeatDeadSignal(tx, id, signalId))) throw notFound();
      return { changed: ['signal repeated'], signal_id: signalId };
    });
  }

  /** Drops a dead letter. @throws DomainError not_found, admin_required */
  drop(manager: ApplicationManager, id: string, signalId: string, origin: AuditOrigin) {
    return this.#change(manager, id, origin, async (tx) => {
      if (!isRowId(signalId) || !(await dropDeadSignal(tx, id, signalId))) throw notFound();
      return { changed: ['signal dropped'], signal_id: signalId };
    });
  }

  /** Runs an act of an admin on a locked application, and records it with its details. */
  #change(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
    act: (tx: EntityManager, application: ClientApplication) => Promise<object>,
  ): Promise<ApplicationSignalsState> {
    return this.managedApplications.change(manager, id, async (tx, application, current) => {
      assertAdmin(current);
      const details = { ...(await act(tx, application)) };
      const type = 'oauth_client_updated';
      await this.managedApplications.record(tx, { type, manager, application, origin, details });
      return stateOf(tx, application);
    });
  }
}

async function stateOf(
  tx: EntityManager,
  { id, orgId }: ClientApplication,
): Promise<ApplicationSignalsState> {
  const receiver = await findReceiver(tx, id);
  const stream = orgId === null ? undefined : await findStream(tx, { clientId: id, orgId });
  return { receiver, stream, ...(await signalsOfClient(tx, id)) };
}

/** An application that keeps no secret cannot get a token of its own. */
function mayReceive({ orgId, resource, metadata }: ClientApplication): boolean {
  return orgId !== null && resource === null && registrationOf(metadata).auth_method !== 'none';
}

function isRowId(id: string): boolean {
  return /^[1-9]\d{0,17}$/.test(id);
}

function notFound(): DomainError {
  return new DomainError('not_found', 'The application has no such signal or permission.');
}

function assertAdmin({ isAdmin }: ApplicationManager): void {
  if (isAdmin) return;
  throw new DomainError('admin_required', 'Only an admin sees the signals of an application.');
}
