import { Controller, Get, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { Route } from '#platform/http/routing/route.js';
import { readQuery, searchFields, type QueryFields } from '../query/scim-query.js';
import { ScimResources } from '../resources/scim-resources.service.js';
import type { ScimCaller } from '../resources/token-checks.js';
import { GROUP_SCHEMA, USER_SCHEMA } from '../language/scim-language.js';
import { Call, piecesOf, SCIM, type ScimCall } from './resource-endpoint.js';
import { listHead, listTail, streamJson } from './scim-response.js';
import { SCIM_ROUTES } from './scim.schemas.js';

/** `/scim/v2`: searches users and groups together. */
@Controller('scim/v2')
@Route(SCIM)
export class ScimSearchController {
  constructor(private readonly scimResources: ScimResources) {}

  /** Searches users and groups by a query in the URL (RFC 7644 §3.4.2.1). */
  @Get()
  @Route({
    operation: 'listScimResources',
    summary: 'Searches users and groups',
    ...SCIM_ROUTES.all.list,
  })
  async list(@Call() { caller, query }: ScimCall, @Res() response: Response): Promise<void> {
    await this.#search(caller, query, response);
  }

  /** Searches users and groups by a query in the body (RFC 7644 §3.4.3). */
  @Post('.search')
  @Route({
    operation: 'searchScimResources',
    summary: 'Searches users and groups by POST (RFC 7644 §3.4.3)',
    ...SCIM_ROUTES.all.search,
  })
  async search(@Call() { caller, body }: ScimCall, @Res() response: Response): Promise<void> {
    await this.#search(caller, searchFields(body), response);
  }

  /**
   * Searches users and then groups, in pages by index. Each type is sorted by itself, because in
   * one sorted list of both types, every page would have to read all resources before it.
   *
   * @throws DomainError invalid_filter for attributes that neither type has, invalid_value,
   *   invalid_cursor
   */
  async #search(caller: ScimCaller, fields: QueryFields, response: Response): Promise<void> {
    const ofUsers = readQuery(fields, USER_SCHEMA, [GROUP_SCHEMA]);
    const ofGroups = readQuery(fields, GROUP_SCHEMA, [USER_SCHEMA]);
    const { search, startIndex } = ofUsers;
    if (search.page.kind === 'cursor') {
      throw new DomainError(
        'invalid_cursor',
        'Users and groups together have pages by index only.',
      );
    }
    const { users, groups } = this.scimResources;
    const { orgId } = caller;
    const foundUsers = await users.search(caller, search);
    const foundGroups = await groups.search(caller, {
      ...ofGroups.search,
      count: search.count - foundUsers.resources.length,
      page: { kind: 'index', startIndex: Math.max(1, startIndex - foundUsers.totalResults) },
    });
    const head = listHead({
      totalResults: foundUsers.totalResults + foundGroups.totalResults,
      startIndex,
      nextCursor: foundGroups.nextCursor,
    });
    const userJson = users.type.renderList(orgId, foundUsers.resources, ofUsers);
    const groupJson = groups.type.renderList(orgId, foundGroups.resources, ofGroups);
    const allPieces = async function* (): AsyncGenerator<string, void> {
      yield head;
      const userCount = yield* piecesOf(userJson, foundUsers.resources.length);
      const groupCount = foundGroups.resources.length;
      if (userCount > 0 && groupCount > 0) yield ',';
      yield* piecesOf(groupJson, groupCount);
      yield listTail(userCount + groupCount);
    };
    await streamJson(response, 200, allPieces());
  }
}
