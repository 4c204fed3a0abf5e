import { Module } from '@nestjs/common';
import { ScimModule as ScimDomainModule } from '#domain/scim/scim.module.js';
import { GroupAnswers } from './group-answers.service.js';
import { ScimAnswers } from './scim-answers.service.js';
import { ScimBulkController } from './scim-bulk.controller.js';
import { ScimBulk } from './scim-bulk.service.js';
import { ScimDiscoveryController } from './scim-discovery.controller.js';
import { ScimEverything } from './scim-everything.service.js';
import { ScimGroupsController } from './scim-groups.controller.js';
import { ScimGroups } from './scim-groups.service.js';
import { ScimSearchController } from './scim-search.controller.js';
import { ScimUsersController } from './scim-users.controller.js';
import { ScimUsers } from './scim-users.service.js';
import { UserAnswers } from './user-answers.service.js';

/**
 * /scim/v2: an organization's identity provider says who is here, by SCIM 2.0 (RFC 7643, RFC 7644) with the paging of RFC 9865.
 * Its token is of one organization, and nothing of another one is there for it. What it changes is changed before the
 * answer: a user who is deleted or inactive has no session, token or valid certificate left. Members of groups are never
 * loaded but to be shown, and then some at a time.
 *
 * It has no passwords, no nested groups and no `/Me`.
 */
@Module({
  imports: [ScimDomainModule],
  controllers: [
    ScimDiscoveryController,
    ScimUsersController,
    ScimGroupsController,
    ScimSearchController,
    ScimBulkController,
  ],
  providers: [
    GroupAnswers,
    ScimAnswers,
    ScimBulk,
    ScimEverything,
    ScimGroups,
    ScimUsers,
    UserAnswers,
  ],
})
export class ScimModule {}
