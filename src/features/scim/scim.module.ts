import { Module } from '@nestjs/common';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { ScimBulkController } from './http/scim-bulk.controller.js';
import { ScimDiscoveryController } from './http/scim-discovery.controller.js';
import { ScimGroupsController } from './http/scim-groups.controller.js';
import { ScimMeController } from './http/scim-me.controller.js';
import { ScimSearchController } from './http/scim-search.controller.js';
import { ScimUsersController } from './http/scim-users.controller.js';
import { ScimResources } from './resources/scim-resources.service.js';
import { RESOURCE_SIZE } from './language/scim-language.js';

/**
 * Serves `/scim/v2`, by which an organization's identity provider creates, changes and removes its
 * users and groups (SCIM 2.0: RFC 7643, RFC 7644, RFC 9865). A token gives access to one
 * organization. A change takes effect before the response: a user who is deleted or inactive has no
 * session, token or valid certificate left.
 */
@UnmatchedPaths({
  '/scim/*': { errors: 'scim', protectedResource: true },
  '/scim/v2/*': { tier: 'general', body: { max: RESOURCE_SIZE }, dropsSecondSlash: true },
})
@Module({
  imports: [HttpModule, DirectoryModule],
  controllers: [
    ScimDiscoveryController,
    ScimUsersController,
    ScimGroupsController,
    ScimSearchController,
    ScimBulkController,
    ScimMeController,
  ],
  providers: [ScimResources],
})
export class ScimModule {}
