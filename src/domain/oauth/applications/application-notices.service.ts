import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
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
import type { ApplicationManager } from './applications.repository.js';
import { ManagedApplications } from './managed-applications.service.js';

/**
 * Shows the logout notices of an application, and repeats or drops its dead letters: for the admins
 * of its organization, and for the owner of an application without an organization.
 */
@Injectable()
export class ApplicationNotices {
  constructor(private readonly managedApplications: ManagedApplications) {}

  /** Lists the dead letters of an application. @throws DomainError not_found, admin_required */
  async list(manager: ApplicationManager, id: string): Promise<NoticesOfClient> {
    const application = await this.managedApplications.find(manager, id);
    assertMaySee(manager);
    return this.managedApplications.read((tx) => noticesOfClient(tx, application.id));
  }

  /** Reads the figures of the notices to the applications of an organization, by kind. */
  async figures(orgId: string): Promise<readonly NoticeFigures[]> {
    const figures = await this.managedApplications.read((tx) =>
      noticeFigures(tx, NOTICE_QUEUES, { orgId }),
    );
    return figures.filter(({ isSelfRegistered }) => !isSelfRegistered);
  }

  /**
   * Puts a dead letter back into the queue, so that it is tried for 24 hours more. @throws
   * DomainError not_found, admin_required
   */
  repeat(manager: ApplicationManager, id: string, noticeId: string, origin: AuditOrigin) {
    return this.#settle(manager, { id, noticeId, origin, act: 'repeated' }, (tx) =>
      repeatDeadLetter(tx, id, noticeId),
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
      assertMaySee(current);
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

function assertMaySee({ isAdmin, orgId }: ApplicationManager): void {
  if (isAdmin || orgId === null) return;
  throw new DomainError('admin_required', 'Only an admin sees the notices of an application.');
}
