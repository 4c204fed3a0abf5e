import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Projection } from '../query/projection.js';
import type { ScimPage } from '../query/search-table.repository.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import type { ScimUser } from '#domain/directory/directory-user.js';
import {
  MOST_AT_ONCE,
  ScimUserListsRepository,
  type ListedUser,
} from '../query/user-search.repository.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { ScimAnswers } from './scim-answers.service.js';
import type { ScimQuery } from '../query/scim-query.js';
import { entityTag, locationOf, userJson } from './resource-json.js';

/** Users as they are answered: those of a large page stream from the database to the client, some at a time. */
@Injectable()
export class UserAnswers {
  constructor(
    private readonly answers: ScimAnswers,
    private readonly work: TenantWork,
    private readonly lists: ScimUserListsRepository,
  ) {}

  /** One user; 304 where the client has this version. */
  one(response: Response, status: number, user: ScimUser, projection: Projection): void {
    if (this.answers.isKnown(response, entityTag(user))) return;
    if (status === 201) {
      response.setHeader('Location', locationOf(this.answers.base, 'Users', user.id));
    }
    this.answers.send(response, status, userJson(user, projection, this.answers.base));
  }

  /** A page of them: at once, unless it is large. */
  async list(
    response: Response,
    caller: ScimActor,
    { totalResults, resources, nextCursor }: ScimPage<ListedUser>,
    query: ScimQuery,
  ): Promise<void> {
    const head = this.answers.listHead({
      totalResults,
      startIndex: query.search.page.kind === 'index' ? query.startIndex : undefined,
      nextCursor,
    });
    const whole = readOf(resources);
    if (whole.length < resources.length) {
      await this.answers.stream(response, 200, this.#listTexts(head, caller, resources, query));
    } else {
      const tail = this.answers.listTail(whole.length);
      this.answers.send(response, 200, head + this.#joined(whole, query) + tail);
    }
  }

  /**
   * Listed users with commas between them, piece by piece. Those who were not read with the list are read as they are now, and
   * left out where they are gone.
   *
   * @returns how many they are
   */
  async *texts(
    { orgId }: ScimActor,
    listed: readonly ListedUser[],
    query: ScimQuery,
  ): AsyncGenerator<string, number> {
    let count = 0;
    let found = listed;
    let left: readonly string[] = [];
    for (;;) {
      const users = readOf(found);
      if (users.length > 0) yield (count > 0 ? ',' : '') + this.#joined(users, query);
      count += users.length;
      left = [...found.flatMap(({ id, user }) => (user ? [] : id)), ...left];
      if (left.length === 0) return count;
      // What is read without being sent, because it is too much, is no more than what is sent.
      const most = Math.min(MOST_AT_ONCE, 2 * Math.max(users.length, 1));
      const next = left.slice(0, most);
      found = await this.work.costly(
        orgId,
        (tx) => this.lists.read(tx, orgId, next, query.search),
        PATIENCE_DURING_RESPONSE,
      );
      left = left.slice(most);
    }
  }

  async *#listTexts(
    head: string,
    caller: ScimActor,
    listed: readonly ListedUser[],
    query: ScimQuery,
  ): AsyncGenerator<string, void> {
    yield head;
    const count = yield* this.texts(caller, listed, query);
    yield this.answers.listTail(count);
  }

  #joined(users: readonly ScimUser[], { projection }: ScimQuery): string {
    return users.map((user) => userJson(user, projection, this.answers.base)).join(',');
  }
}

function readOf(listed: readonly ListedUser[]): ScimUser[] {
  return listed.flatMap(({ user }) => user ?? []);
}
