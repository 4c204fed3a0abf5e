import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import type { ScimPage } from '../query/search-table.repository.js';
import { GROUP_SCHEMA, USER_SCHEMA } from '../schema/schemas.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { GroupAnswers } from './group-answers.service.js';
import { readQuery, type QueryFields } from '../query/scim-query.js';
import { ScimGroups } from './scim-groups.service.js';
import { ScimUsers } from './scim-users.service.js';
import { UserAnswers } from './user-answers.service.js';

/** Searches users and groups at once (RFC 7644 §3.4.2.1): users first, then groups, in pages by index. */
@Injectable()
export class ScimEverything {
  constructor(
    private readonly users: ScimUsers,
    private readonly groups: ScimGroups,
    private readonly userAnswers: UserAnswers,
    private readonly groupAnswers: GroupAnswers,
  ) {}

  /** @throws DomainError invalid_filter for a filter of what neither has, invalid_value, invalid_cursor */
  async search(caller: ScimActor, fields: QueryFields, response: Response): Promise<void> {
    const ofUsers = readQuery(fields, USER_SCHEMA, [GROUP_SCHEMA]);
    const ofGroups = readQuery(fields, GROUP_SCHEMA, [USER_SCHEMA]);
    const { search, startIndex } = ofUsers;
    if (search.page.kind === 'cursor') {
      throw new DomainError('invalid_cursor', 'Users and groups together come by index alone.');
    }
    const users = await this.users.search(caller, search);
    const groups = await this.groups.search(caller, {
      ...ofGroups.search,
      count: search.count - users.resources.length,
      page: { kind: 'index', startIndex: Math.max(1, startIndex - users.totalResults) },
    });
    const page: ScimPage<(typeof groups.resources)[number]> = {
      ...groups,
      totalResults: users.totalResults + groups.totalResults,
    };
    const texts = this.userAnswers.texts(caller, users.resources, ofUsers);
    await this.groupAnswers.list(response, caller, page, ofGroups, texts);
  }
}
