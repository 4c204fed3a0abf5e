import { Injectable } from '@nestjs/common';
import { DataSource, EntityManager } from 'typeorm';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  ApplicationsRepository,
  type Application,
  type ApplicationManager,
} from '#domain/grants/applications.repository.js';
import { Members } from '#domain/directory/members.service.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** How many applications a page shows. */
const PAGE_SIZE = 100;

/** What somebody did to an application. */
export interface Act {
  readonly type: AuditType;
  readonly manager: ApplicationManager;
  readonly application: Application;
  readonly origin: AuditOrigin;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The applications that somebody manages: the way to every one of them, and what is recorded of it. */
@Injectable()
export class ManagedApplications {
  constructor(
    private readonly dataSource: DataSource,
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly applications: ApplicationsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** A page of them; `next` is where the one after it begins. */
  async list(
    manager: ApplicationManager,
    after: string,
  ): Promise<{ readonly applications: readonly Application[]; readonly next: string | null }> {
    const page = { after, limit: PAGE_SIZE + 1 };
    const read = (tx: EntityManager) => this.applications.list(tx, manager, page);
    const found = await this.work.costly(manager.orgId ?? manager.userId, read);
    const applications = found.slice(0, PAGE_SIZE);
    const hasMore = found.length > PAGE_SIZE;
    return { applications, next: hasMore ? (applications.at(-1)?.id ?? null) : null };
  }

  /** @throws DomainError not_found for an application that they do not manage */
  async find(
    manager: ApplicationManager,
    id: string,
    tx: EntityManager = this.dataSource.manager,
  ): Promise<Application> {
    return orNotFound(isClientId(id) && (await this.applications.find(tx, manager, id)));
  }

  /** Does something to an application while nobody else changes it. @throws DomainError not_found */
  async change<Result>(
    manager: ApplicationManager,
    id: string,
    act: (tx: EntityManager, application: Application) => Promise<Result>,
  ): Promise<Result> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const still = { ...manager, isAdmin: await this.#holdAdmin(tx, manager) };
      return act(tx, orNotFound(isClientId(id) && (await this.applications.lock(tx, still, id))));
    });
  }

  /** Whether a manager is still an admin, and so until the transaction ends; their own applications they manage anyway. */
  async #holdAdmin(tx: EntityManager, manager: ApplicationManager): Promise<boolean> {
    const { isAdmin, orgId, userId: id, sessionId } = manager;
    return isAdmin && orgId !== null && this.members.isAdminHeld(tx, { id, orgId, sessionId });
  }

  /** Records what somebody did to an application, in the transaction in which they do it. */
  async record(
    tx: EntityManager,
    { type, manager, application, origin, details }: Act,
  ): Promise<void> {
    await this.audit.record(tx, {
      type,
      actorId: manager.userId,
      subjectId: application.ownerId,
      orgId: application.orgId,
      origin,
      details: { client_id: application.id, ...details },
    });
  }
}

function isClientId(id: string): boolean {
  return /^[\w-]{1,64}$/.test(id);
}

function orNotFound(application: Application | false | undefined): Application {
  if (!application) throw new DomainError('not_found', 'You have no such application.');
  return application;
}
