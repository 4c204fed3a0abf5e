import { Inject, Injectable } from '@nestjs/common';
import { GroupProvisioning } from '#domain/directory/provisioning/group-provisioning.service.js';
import { MembershipsRepository } from '#domain/directory/provisioning/memberships.repository.js';
import { UserProvisioning } from '#domain/directory/provisioning/user-provisioning.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { GroupResource } from './group-resource.js';
import { ScimResource } from './scim-resource.js';
import { UserResource } from './user-resource.js';

/** The two types of resources of `/scim/v2`. */
@Injectable()
export class ScimResources {
  /** The address of the SCIM service, without a slash at its end. */
  readonly base: string;
  readonly users;
  readonly groups;

  constructor(
    @Inject(CONFIG) config: Config,
    tenantWork: TenantWork,
    users: UserProvisioning,
    groups: GroupProvisioning,
    memberships: MembershipsRepository,
  ) {
    this.base = `${config.http.baseUrl}/scim/v2`;
    this.users = new ScimResource(
      tenantWork,
      this.base,
      new UserResource(tenantWork, users, this.base),
    );
    this.groups = new ScimResource(
      tenantWork,
      this.base,
      new GroupResource(tenantWork, groups, memberships, this.base),
    );
  }
}
