import { Module } from '@nestjs/common';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { GroupAnswers } from './resources/group-answers.service.js';
import { ScimAnswers } from './resources/scim-answers.service.js';
import { ScimBulkController } from './http/scim-bulk.controller.js';
import { ScimBulk } from './bulk/scim-bulk.service.js';
import { ScimDiscoveryController } from './http/scim-discovery.controller.js';
import { ScimEverything } from './resources/scim-everything.service.js';
import { ScimGroupsController } from './http/scim-groups.controller.js';
import { ScimGroups } from './resources/scim-groups.service.js';
import { ScimSearchController } from './http/scim-search.controller.js';
import { ScimUsersController } from './http/scim-users.controller.js';
import { ScimUserListsRepository } from './query/user-search.repository.js';
import { ScimUsers } from './resources/scim-users.service.js';
import { UserAnswers } from './resources/user-answers.service.js';

/**
 * /scim/v2: an organization's identity provider says who is here, by SCIM 2.0 (RFC 7643, RFC 7644) with the paging of RFC 9865.
 * Its token is of one organization, and nothing of another one is there for it. What it changes is changed before the
 * answer: a user who is deleted or inactive has no session, token or valid certificate left. Members of groups are never
 * loaded but to be shown, and then some at a time.
 *
 * It has no passwords, no nested groups and no `/Me`.
 */
@UnmatchedPaths({
  '/scim/*': { errors: 'scim', protectedResource: true },
  '/scim/v2/*': { tier: 'general', body: { max: 64 * KIB } },
})
@Module({
  imports: [DirectoryModule],
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
    ScimUserListsRepository,
    ScimUsers,
    UserAnswers,
  ],
})
export class ScimModule {}
