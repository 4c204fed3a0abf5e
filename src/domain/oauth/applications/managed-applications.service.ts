import { Injectable } from '@nestjs/common';
import { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { NotedAct } from '#domain/audit/noted-act.js';
import {
  approveApplication,
  findApplication,
  isProvenResource,
  limitApproval,
  listApplicationFacts,
  listApplications,
  lockApplication,
  type ClientApplication,
  type ApplicationFacts,
  type ApplicationManager,
} from './applications.repository.js';
import {
  ClientsRepository,
  type ClientAccess,
  type ClientSecret,
} from '../clients/clients.repository.js';
import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { checkReader } from '#domain/directory/api-tokens/reader.js';
import { Members } from '#domain/directory/members.service.js';
import { registrationOf } from './registration-metadata.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The most applications on one page of the list. */
const PAGE_SIZE = 100;

/**
 * An application as a list shows it, with the owner's e-mail address and the expiry of its secrets.
 */
export interface ListedApplication extends ApplicationFacts {
  readonly application: ClientApplication;
}

/** An application with its secrets, and the counts of the access that its deletion would end. */
export interface ApplicationDetails extends ListedApplication {
  readonly secrets: readonly ClientSecret[];
  readonly access: ClientAccess;
  /**
   * False for a cluster whose resource is in no domain that the organization has proven. The
   * organization could not register such a cluster today.
   */
  readonly isProven: boolean;
}

/** A change of an application, as the audit log records it. */
export interface ApplicationChange {
  readonly type: AuditType;
  readonly manager: ApplicationManager;
  readonly application: ClientApplication;
  readonly origin: AuditOrigin;
  readonly details: Readonly<Record<string, unknown>>;
  /**
   * The acts, such as the removal of a secret, that the service repeats if a failover of the
   * database loses the commit of the change.
   */
  readonly acts?: readonly NotedAct[];
}

/**
 * Finds the applications that a user may manage, locks them for a change, and records the change in
 * the audit log.
 */
@Injectable()
export class ManagedApplications {
  constructor(
    private readonly dataSource: DataSource,
    private readonly tenantWork: TenantWork,
    private readonly members: Members,
    private readonly clientsRepository: ClientsRepository,
    private readonly auditLog: AuditLog,
  ) {}

  /**
   * Lists a page of the applications that a manager may manage. `next` is the id after which the
   * next page begins; it is null on the last page.
   *
   * @param program the program that reads with an API token in place of the manager; undefined if
   *   the manager reads
   * @throws DomainError unauthenticated if the API token of the program has ended meanwhile
   */
  async list(
    manager: ApplicationManager,
    after: string,
    program?: Program,
  ): Promise<{
    readonly applications: readonly ClientApplication[];
    readonly next: string | null;
  }> {
    const page = { after, limit: PAGE_SIZE + 1 };
    const read = async (tx: EntityManager) => {
      if (program) await checkReader(tx, this.members, program);
      return listApplications(tx, manager, page);
    };
    const found = await this.tenantWork.costly(manager.orgId ?? manager.userId, read);
    const applications = found.slice(0, PAGE_SIZE);
    const hasMore = found.length > PAGE_SIZE;
    return { applications, next: hasMore ? (applications.at(-1)?.id ?? null) : null };
  }

  /** Lists a page of the applications of a manager, each with its {@link ApplicationFacts}. */
  async listWithFacts(
    manager: ApplicationManager,
    after: string,
  ): Promise<{
    readonly applications: readonly ListedApplication[];
    readonly next: string | null;
  }> {
    const { applications, next } = await this.list(manager, after);
    const ids = applications.map(({ id }) => id);
    const facts = await this.read((tx) => listApplicationFacts(tx, ids));
    return { applications: applications.map((one) => withFacts(one, facts)), next };
  }

  /**
   * Returns an application with its secrets, and the counts of the access that its deletion would
   * end.
   *
   * @throws DomainError not_found
   */
  async details(manager: ApplicationManager, id: string): Promise<ApplicationDetails> {
    const application = await this.find(manager, id);
    const { manager: tx } = this.dataSource;
    const [facts, secrets, access, isProven] = await Promise.all([
      listApplicationFacts(tx, [id]),
      this.clientsRepository.listSecrets(tx, id),
      this.clientsRepository.countAccess(tx, id),
      application.resource === null || isProvenResource(tx, id),
    ]);
    return { ...withFacts(application, facts), secrets, access, isProven };
  }

  /**
   * Finds an application by its id.
   *
   * @throws DomainError not_found if the user may not manage it
   */
  async find(
    manager: ApplicationManager,
    id: string,
    tx: EntityManager = this.dataSource.manager,
  ): Promise<ClientApplication> {
    const isKnown = isClientId(id);
    return orNotFound(isKnown && (await findApplication(tx, manager, id)));
  }

  /** Runs a read of the database that needs no transaction. */
  read<Result>(query: (manager: EntityManager) => Promise<Result>): Promise<Result> {
    return query(this.dataSource.manager);
  }

  /**
   * Runs the registration of an application in a transaction, which is retried after a deadlock.
   */
  register<Result>(act: (tx: EntityManager) => Promise<Result>): Promise<Result> {
    return withTransactionRetry(this.dataSource, act);
  }

  /**
   * Locks the session in which a user manages applications, so that it does not end until the
   * transaction does.
   *
   * @throws DomainError unauthenticated
   */
  async holdSession(tx: EntityManager, manager: ApplicationManager): Promise<void> {
    if (!(await this.#isSessionHeld(tx, manager))) throw sessionEnded();
  }

  /**
   * Runs a registration for the organization of an admin. The transaction first locks the role of
   * the admin, so that it cannot be taken away meanwhile.
   *
   * @throws DomainError admin_required
   */
  registerAsAdmin<Result>(
    manager: ApplicationManager,
    act: (tx: EntityManager, orgId: string) => Promise<Result>,
  ): Promise<Result> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const { orgId } = manager;
      const mayAct = orgId !== null && manager.isAdmin && (await this.#holdAdmin(tx, manager));
      if (!mayAct) {
        throw new DomainError(
          'admin_required',
          'Only an admin of an organization can register a kubernetes application.',
        );
      }
      return act(tx, orgId);
    });
  }

  /**
   * Changes an application under a lock on its row. The function `act` gets the manager with the
   * rights that the manager has under the lock. The role of admin may have been taken away since
   * the request began. If the session has ended since then, nothing changes.
   *
   * @throws DomainError not_found, unauthenticated
   */
  async change<Result>(
    manager: ApplicationManager,
    id: string,
    act: (
      tx: EntityManager,
      application: ClientApplication,
      current: ApplicationManager,
    ) => Promise<Result>,
  ): Promise<Result> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      // The role of an admin is locked together with the session, and counts only with it.
      const isOrgAdmin = await this.#holdAdmin(tx, manager);
      const isHeld = isOrgAdmin || (await this.#isSessionHeld(tx, manager));
      const current = { ...manager, isAdmin: manager.isAdmin && isOrgAdmin, isOrgAdmin };
      const isKnown = isClientId(id);
      const found = isKnown && (await lockApplication(tx, current, id));
      const application = orNotFound(found);
      if (!isHeld) throw sessionEnded();
      return act(tx, application, current);
    });
  }

  /**
   * Approves an application for its present redirect URIs. Members of the organization can then
   * sign in to it without a page that asks for consent.
   *
   * @param check a function that throws if the application has changed since the admin saw it
   * @throws DomainError not_found, admin_required, invalid_request for a cluster
   */
  approve(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
    check: (current: ClientApplication) => void,
  ): Promise<ClientApplication> {
    return this.change(manager, id, async (tx, application, current) => {
      if (!current.isAdmin) {
        throw new DomainError('admin_required', 'Only an admin can approve an application.');
      }
      if (application.resource !== null) {
        throw new DomainError('invalid_request', 'A kubernetes application needs no approval.');
      }
      check(application);
      await approveApplication(tx, id, manager.userId);
      const { name, redirect_uris: redirectUris } = registrationOf(application.metadata);
      const details = { name, redirect_uris: redirectUris };
      const act = { type: 'application_approved', manager, application, origin, details } as const;
      await this.record(tx, act);
      return this.find(current, id, tx);
    });
  }

  /**
   * Limits the approval of an application to the redirect URIs that the approval still covers after
   * a change. If `uris` is null, the approval ends.
   */
  async limitApproval(
    tx: EntityManager,
    id: string,
    uris: readonly string[] | null,
  ): Promise<void> {
    await limitApproval(tx, id, uris);
  }

  /** Records a change of an application in the audit log, in the transaction of the change. */
  async record(tx: EntityManager, change: ApplicationChange): Promise<void> {
    const { type, manager, application, origin, details, acts } = change;
    await this.auditLog.record(tx, {
      type,
      actorId: manager.userId,
      subjectId: application.ownerId,
      orgId: application.orgId,
      origin,
      details: { client_id: application.id, ...details },
      ...(acts && { acts }),
    });
  }

  #isSessionHeld(
    tx: EntityManager,
    { userId: id, sessionId }: ApplicationManager,
  ): Promise<boolean> {
    return this.members.isSessionHeld(tx, { id, sessionId });
  }

  /**
   * Checks that the manager is an admin of the organization, and locks the role, so that the
   * manager stays an admin until the transaction ends. Returns false for an owner who is no admin.
   */
  async #holdAdmin(tx: EntityManager, manager: ApplicationManager): Promise<boolean> {
    const { isOrgAdmin, orgId, userId: id, sessionId } = manager;
    return isOrgAdmin && orgId !== null && this.members.isAdminHeld(tx, { id, orgId, sessionId });
  }
}

function withFacts(
  application: ClientApplication,
  facts: ReadonlyMap<string, ApplicationFacts>,
): ListedApplication {
  return { application, ...(facts.get(application.id) ?? { ownerEmail: null, secretsEnd: null }) };
}

function sessionEnded(): DomainError {
  return new DomainError('unauthenticated', 'This session has ended. Sign in again.');
}

function isClientId(id: string): boolean {
  return /^[\w-]{1,64}$/.test(id);
}

function orNotFound(application: ClientApplication | false | undefined): ClientApplication {
  if (!application) throw new DomainError('not_found', 'You have no such application.');
  return application;
}
