import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  OrganizationsRepository,
  type OrganizationSettings,
} from '#domain/organizations/organizations.repository.js';
import { Members, adminRequired } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { OrganizationChange } from './organization.schemas.js';

/** The settings of an organization, as its admins read and change them. */
@Injectable()
export class ChangeOrganization {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws DomainError admin_required */
  async show({ orgId }: Admin): Promise<OrganizationSettings> {
    const settings = await this.organizations.settings(this.dataSource.manager, orgId);
    if (!settings) throw adminRequired();
    return settings;
  }

  /**
   * Changes settings, each with its old and its new value in the audit row. What changes nothing is no event.
   *
   * @throws DomainError admin_required
   */
  async change(
    admin: Admin,
    change: OrganizationChange,
    origin: AuditOrigin,
  ): Promise<OrganizationSettings> {
    const { id: actorId, orgId } = admin;
    return this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const before = await this.organizations.lockSettings(tx, orgId);
      const after = { ...before, ...change };
      const details = differences(before, after);
      if (Object.keys(details).length === 0) return before;
      await this.organizations.changeSettings(tx, orgId, after);
      await this.audit.record(tx, {
        type: 'org_updated',
        actorId,
        subjectId: null,
        orgId,
        origin,
        details,
      });
      return after;
    });
  }
}

function differences(
  before: OrganizationSettings,
  after: OrganizationSettings,
): Record<string, { readonly from: string; readonly to: string }> {
  const names = ['name', 'membership'] as const;
  return Object.fromEntries(
    names
      .filter((name) => before[name] !== after[name])
      .map((name) => [name, { from: before[name], to: after[name] }]),
  );
}
