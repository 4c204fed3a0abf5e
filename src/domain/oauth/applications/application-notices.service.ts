import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { Clock } from '#platform/clock/clock.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  dropDeadLetter,
  noticesOfClient,
  repeatDeadLetter,
  type NoticesOfClient,
} from '../logout-notices/dead-letters.repository.js';
import type { ApplicationManager } from './applications.repository.js';
import { ManagedApplications } from './managed-applications.service.js';

/** Milliseconds for which a repeated notice is tried. */
const REPEATED_FOR = 24 * 3_600_000;

/** Shows admins the logout notices of an application, and repeats or drops its dead letters. */
@Injectable()
export class ApplicationNotices {
  constructor(
    private readonly managedApplications: ManagedApplications,
    private readonly clock: Clock,
  ) {}

  /** Lists the dead letters of an application. @throws DomainError not_found, admin_required */
  async list(manager: ApplicationManager, id: string): Promise<NoticesOfClient> {
    const application = await this.managedApplications.find(manager, id);
    assertAdmin(manager);
    return this.managedApplications.read((tx) => noticesOfClient(tx, application.id));
  }

  /**
   * Sends a dead letter again, for another day. @throws DomainError not_found, admin_required
   */
  repeat(manager: ApplicationManager, id: string, noticeId: string, origin: AuditOrigin) {
    const giveUpAt = new Date(this.clock.milliseconds() + REPEATED_FOR);
    return this.#settle(manager, { id, noticeId, origin, act: 'repeated' }, (tx) =>
      repeatDeadLetter(tx, id, noticeId, giveUpAt),
    );
  }

  /** Drops a dead letter. @throws DomainError not_found, admin_required */
  drop(manager: ApplicationManager, id: string, noticeId: string, origin: AuditOrigin) {
    return this.#settle(manager, { id, noticeId, origin, act: 'dropped' }, (tx) =>
      dropDeadLetter(tx, id, noticeId),
    );
  }

  async #settle(
    manager: ApplicationManager,
    { id, noticeId, origin, act }: DeadLetterAct,
    settle: (tx: EntityManager) => Promise<boolean>,
  ): Promise<void> {
    await this.managedApplications.change(manager, id, async (tx, application, current) => {
      assertAdmin(current);
      const isThere = /^[1-9]\d{0,17}$/.test(noticeId) && (await settle(tx));
      if (!isThere) {
        throw new DomainError('not_found', 'The application has no such dead letter.');
      }
      const type = 'oauth_client_updated';
      const details = { changed: [`logout notice ${act}`], notice_id: noticeId };
      await this.managedApplications.record(tx, { type, manager, application, origin, details });
    });
  }
}

/** An act of an admin on a dead letter. */
interface DeadLetterAct {
  readonly id: string;
  readonly noticeId: string;
  readonly origin: AuditOrigin;
  readonly act: 'repeated' | 'dropped';
}

function assertAdmin({ isAdmin }: ApplicationManager): void {
  if (isAdmin) return;
  throw new DomainError('admin_required', 'Only an admin sees the notices of an application.');
}
