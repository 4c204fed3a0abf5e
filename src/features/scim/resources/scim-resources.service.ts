import { Inject, Injectable, Logger } from '@nestjs/common';
import { GroupProvisioning } from '#domain/directory/provisioning/group-provisioning.service.js';
import { MembershipsRepository } from '#domain/directory/provisioning/memberships.repository.js';
import { UserProvisioning } from '#domain/directory/provisioning/user-provisioning.service.js';
import { recordScimRefusals } from '#domain/directory/scim-tokens/record-scim-refusals.js';
import type {
  RefusedActor,
  ScimRefusal,
} from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { GroupResource } from './group-resource.js';
import { ScimResource, type OnLeftOut } from './scim-resource.js';
import { TokenChecks } from './token-checks.js';
import { UserResource } from './user-resource.js';

/** The resources of `/scim/v2` by their two types, users and groups. */
@Injectable()
export class ScimResources {
  /** The base URL of the SCIM service, without a slash at its end. */
  readonly base: string;
  readonly users;
  readonly groups;
  readonly #security = new Logger('security');

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly tenantWork: TenantWork,
    users: UserProvisioning,
    groups: GroupProvisioning,
    memberships: MembershipsRepository,
    readonly clock: Clock,
  ) {
    const tokenChecks = new TokenChecks(tenantWork, clock);
    const report: OnLeftOut = (...leftOut) => this.#reportLeftOut(...leftOut);
    this.base = `${config.http.baseUrl}/scim/v2`;
    this.users = new ScimResource(
      tenantWork,
      this.base,
      new UserResource(tenantWork, users, this.base),
      report,
      tokenChecks,
    );
    this.groups = new ScimResource(
      tenantWork,
      this.base,
      new GroupResource(tenantWork, groups, memberships, this.base),
      report,
      tokenChecks,
    );
  }

  /** Records the refused writes of a request in the audit log. */
  recordRefusals(actor: RefusedActor, refusals: readonly ScimRefusal[]): Promise<void> {
    return recordScimRefusals(this.tenantWork, actor, refusals);
  }

  /**
   * Logs and records the parts of a write that were not applied. The other parts were applied all
   * the same, because the write ends access.
   */
  #reportLeftOut(
    ...[actor, resourceType, resourceId, leftOut]: Parameters<OnLeftOut>
  ): Promise<void> {
    const { orgId, tokenId } = actor;
    this.#security.warn(
      { orgId, tokenId, resourceType, resourceId, leftOut },
      'SCIM ended access, and left out what cannot be applied',
    );
    const detail = leftOut.map(({ name, reason }) => `${name} (${reason})`).join(', ');
    const refusal = { resourceType, resourceId, reason: 'left_out', method: '', detail };
    return this.recordRefusals(actor, [refusal]);
  }
}
