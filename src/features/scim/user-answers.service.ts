import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Projection } from '#domain/scim/projection.js';
import type { ScimPage } from '#domain/scim/scim-search.repository.js';
import type { ScimUser } from '#domain/scim/scim-users.repository.js';
import { ScimAnswers } from './scim-answers.service.js';
import type { ScimQuery } from './scim-query.js';
import { entityTag, locationOf, userJson } from './scim-resources.js';

/** Users as they are answered. */
@Injectable()
export class UserAnswers {
  constructor(private readonly answers: ScimAnswers) {}

  /** One user; 304 where the client has this version. */
  one(response: Response, status: number, user: ScimUser, projection: Projection): void {
    if (this.answers.isKnown(response, entityTag(user))) return;
    if (status === 201) {
      response.setHeader('Location', locationOf(this.answers.base, 'Users', user.id));
    }
    this.answers.send(response, status, this.json(user, projection));
  }

  json(user: ScimUser, projection: Projection): string {
    return userJson(user, projection, this.answers.base);
  }

  /** A page of them. */
  list(
    response: Response,
    { totalResults, resources, nextCursor }: ScimPage<ScimUser>,
    { projection, search, startIndex }: ScimQuery,
  ): void {
    const users = resources.map((user) => this.json(user, projection));
    const head = this.answers.listHead({
      totalResults,
      itemsPerPage: users.length,
      startIndex: search.page.kind === 'index' ? startIndex : undefined,
      nextCursor,
    });
    this.answers.send(response, 200, `${head}${users.join(',')}]}`);
  }
}
