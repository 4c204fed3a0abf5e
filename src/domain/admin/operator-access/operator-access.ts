import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { AccountAudit } from '#domain/directory/account.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { UsersRepository, type User } from '#domain/directory/users.repository.js';
import type { GivenPass } from '#domain/keys/enrollment-passes/enrollment-pass.js';
import { EnrollmentPassesRepository } from '#domain/keys/enrollment-passes/enrollment-passes.repository.js';
import { givePass } from '#domain/keys/enrollment-passes/give-pass.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { REASONS, REVOKED_BY } from '../revocation-kinds/operator-ends.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { operatorDetails, type MachineOperator } from './operator.js';
import { rehearsed } from './rehearsal.js';
import { findPeople, type PeopleQuery, type KnownPerson } from './people.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The result of an act of the operator. */
export interface ActOutcome {
  /** False if the act had no effect; then no audit event was written. */
  readonly changed: boolean;
  readonly ended: RevokedCounts;
  readonly pass?: GivenPass;
}

/** An act of the operator on a user, with the facts about the operator for the audit event. */
export interface OperatorAct {
  readonly kind: 'make-admin' | 'revoke-everything' | 'give-pass';
  readonly userId: string;
  readonly operator: MachineOperator;
}

/** The dependencies of {@link OperatorAccess}. */
export interface OperatorParts {
  readonly dataSource: DataSource;
  readonly users: UsersRepository;
  readonly organizations: OrganizationsRepository;
  readonly directory: UserDirectory;
  readonly passes: EnrollmentPassesRepository;
  readonly audit: AuditLog;
}

/**
 * The acts of the operator of the service on accounts. Each change is one transaction with its
 * audit event.
 */
export class OperatorAccess {
  constructor(private readonly parts: OperatorParts) {}

  /** Finds people by e-mail address, organization or role, for the operator. */
  find(query: PeopleQuery): Promise<KnownPerson[]> {
    return findPeople(this.parts.dataSource.manager, query);
  }

  /**
   * Performs an act of the operator.
   *
   * @throws DomainError not_found for a user who was removed, account_inactive, admin_required for
   *   a user without an organization, domain_not_proven for an e-mail address in a domain that the
   *   organization does not own
   */
  perform(act: OperatorAct): Promise<ActOutcome> {
    return withTransactionRetry(this.parts.dataSource, (tx) => this.#perform(tx, act));
  }

  /**
   * Returns the result that an act would have. The transaction of the act is rolled back, so that
   * nothing changes.
   *
   * @throws DomainError as the act does
   */
  async rehearse(act: OperatorAct): Promise<ActOutcome> {
    const performs = (tx: EntityManager) => this.#perform(tx, act);
    const { changed, ended } = await rehearsed(this.parts.dataSource, performs);
    // The pass is left out, because the transaction was rolled back and the pass does not exist.
    return { changed, ended };
  }

  async #perform(tx: EntityManager, act: OperatorAct): Promise<ActOutcome> {
    const user = await this.parts.directory.lock(tx, act.userId);
    if (act.kind === 'make-admin') return this.#makeAdmin(tx, user, act);
    if (act.kind === 'give-pass') return this.#givePass(tx, user, act);
    const reason = REASONS['revoke-everything'];
    const audit = auditOf(act, user, 'admin_revoke_credentials');
    const end = { reason, revokedBy: REVOKED_BY, audit };
    const ended = await this.parts.directory.revokeCredentials(tx, user, end);
    return { changed: true, ended };
  }

  async #givePass(tx: EntityManager, user: User, act: OperatorAct): Promise<ActOutcome> {
    const reason = REASONS['give-pass'];
    const audit = auditOf(act, user, 'enrollment_pass_created');
    const end = { reason, revokedBy: REVOKED_BY, audit };
    const { pass, ended } = await givePass(tx, this.parts, user, end, null);
    return { changed: true, ended, pass };
  }

  /**
   * Makes a user an admin. The account must be active, and its organization must own the domain of
   * its e-mail address. The service refuses the requests of an admin without these two properties.
   */
  async #makeAdmin(tx: EntityManager, user: User, act: OperatorAct): Promise<ActOutcome> {
    const { id, orgId, email, active } = user;
    if (orgId === null) {
      throw new DomainError(
        'admin_required',
        'This person is in no organization, and cannot be its admin.',
      );
    }
    if (!active) throw new DomainError('account_inactive', 'This account is deactivated.');
    const { organizations, users, audit } = this.parts;
    if (email === null || !(await organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) {
      throw new DomainError(
        'domain_not_proven',
        'The organization has not proven that it owns the domain of this address: its admin could not act.',
      );
    }
    if (!(await users.setAdmin(tx, { id, orgId }, true))) return { changed: false, ended: {} };
    await audit.record(tx, { ...auditOf(act, user, 'admin_promote'), subjectId: id, orgId });
    return { changed: true, ended: {} };
  }
}

/**
 * Returns the audit event of an act. It names no actor, because the operator of the service is no
 * user. It contains the e-mail address, because the log keeps the event longer than the account
 * exists.
 */
function auditOf<Type extends AccountAudit['type'] | 'admin_promote'>(
  { operator }: OperatorAct,
  { email }: User,
  type: Type,
) {
  const origin: AuditOrigin = { requestId: newUuid(), ip: undefined, userAgent: undefined };
  return { type, actorId: null, origin, details: { email, ...operatorDetails(operator) } };
}
