import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';
import { UsersRepository } from './users.repository.js';

/** A member who may become their organization's admin. */
export interface Claimant {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
}

/**
 * Who becomes an organization's first admin. Without SVC_BOOTSTRAP_ADMINS: whoever made the organization, and never
 * again by being first. With it: only a listed person, when they enroll or log in while there is no active admin.
 */
@Injectable()
export class ClaimAdmin {
  readonly #listed: ReadonlySet<string> | undefined;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly organizations: OrganizationsRepository,
    private readonly users: UsersRepository,
    private readonly audit: AuditLog,
  ) {
    this.#listed = config.enrollment.bootstrapAdmins;
  }

  /** Lets the person who made an organization become its admin, where no list says who may. */
  async forFounder(tx: EntityManager, claimant: Claimant, origin: AuditOrigin): Promise<void> {
    if (this.#listed) return; // judged as any member is
    if (await this.organizations.claimFirstAdmin(tx, claimant.orgId)) {
      await this.#promote(tx, claimant, origin, 'founder');
    }
  }

  /** Lets a listed person become the admin of an organization that has none. */
  async forMember(tx: EntityManager, claimant: Claimant, origin: AuditOrigin): Promise<void> {
    const { orgId, email } = claimant;
    if (!this.#listed?.has(email)) return;
    // Who manages the people of an organization can give one any address: the list means the owner of its domain.
    if (!(await this.organizations.ownsDomain(tx, orgId, domainOfEmail(email)))) return;
    if (await this.organizations.claimVacantAdmin(tx, orgId)) {
      await this.#promote(tx, claimant, origin, 'SVC_BOOTSTRAP_ADMINS');
    }
  }

  async #promote(
    tx: EntityManager,
    { id, orgId }: Claimant,
    origin: AuditOrigin,
    reason: string,
  ): Promise<void> {
    await this.users.makeAdmin(tx, id);
    await this.audit.record(tx, {
      type: 'admin_promote',
      actorId: id,
      subjectId: id,
      orgId,
      origin,
      details: { reason },
    });
  }
}
