import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Response } from 'express';
import type { Projection } from '#domain/scim/projection.js';
import {
  ScimGroupsRepository,
  type ScimGroup,
  type ScimMember,
} from '#domain/scim/scim-groups.repository.js';
import type { ScimPage } from '#domain/scim/scim-search.repository.js';
import { ScimAnswers } from './scim-answers.service.js';
import type { ScimQuery } from './scim-query.js';
import { entityTag, groupHead, locationOf, memberJson } from './scim-resources.js';

/** Members that are held at a time. */
const BATCH = 2000;

/** Members up to which a group is shown after a PATCH. */
const MOST_SHOWN = 200;

/** Groups as they are answered: their members stream from the database to the client, some at a time. */
@Injectable()
export class GroupAnswers {
  constructor(
    private readonly answers: ScimAnswers,
    private readonly manager: EntityManager,
    private readonly groups: ScimGroupsRepository,
  ) {}

  /** One group; 304 where the client has this version. */
  async one(
    response: Response,
    status: number,
    group: ScimGroup,
    projection: Projection,
  ): Promise<void> {
    if (this.answers.isKnown(response, entityTag(group))) return;
    if (status === 201) {
      response.setHeader('Location', locationOf(this.answers.base, 'Groups', group.id));
    }
    await this.answers.stream(response, status, this.#texts([group], projection));
  }

  /** After a PATCH: the group, unless it is large and nothing in particular was asked for (RFC 7644 §3.5.2). */
  async patched(response: Response, group: ScimGroup, projection: Projection): Promise<void> {
    if (
      projection.isDefault &&
      !(await this.groups.hasAtMost(this.manager, group.id, MOST_SHOWN))
    ) {
      response.setHeader('ETag', entityTag(group));
      response.status(204).end();
    } else await this.one(response, 200, group, projection);
  }

  /** A page of them. @param before resources of another type that come first, and how many they were */
  async list(
    response: Response,
    { totalResults, resources, nextCursor }: ScimPage<ScimGroup>,
    query: ScimQuery,
    before?: AsyncGenerator<string, number>,
  ): Promise<void> {
    const head = this.answers.listHead({
      totalResults,
      startIndex: query.search.page.kind === 'index' ? query.startIndex : undefined,
      nextCursor,
    });
    await this.answers.stream(response, 200, this.#listTexts(head, resources, query, before));
  }

  async *#listTexts(
    head: string,
    groups: readonly ScimGroup[],
    { projection }: ScimQuery,
    before?: AsyncGenerator<string, number>,
  ): AsyncGenerator<string, void> {
    yield head;
    const others = before ? yield* before : 0;
    if (others > 0 && groups.length > 0) yield ',';
    yield* this.#texts(groups, projection);
    yield this.answers.listTail(others + groups.length);
  }

  /** Groups with commas between them, piece by piece. */
  async *#texts(
    groups: readonly ScimGroup[],
    projection: Projection,
  ): AsyncGenerator<string, void> {
    const withMembers = projection.needsMembers;
    for (const [index, group] of groups.entries()) {
      yield `${index === 0 ? '' : ','}${groupHead(group, projection, this.answers.base)}`;
      if (withMembers) yield* this.#membersOf(group);
      yield '}';
    }
  }

  /** `,"members":[…]`, or nothing where there are none. */
  async *#membersOf({ id }: ScimGroup): AsyncGenerator<string, void> {
    let last: ScimMember | undefined;
    let isFirst = true;
    do {
      const batch: readonly ScimMember[] = await this.groups.members(
        this.manager,
        id,
        last?.userId,
        BATCH,
      );
      if (batch.length > 0)
        yield (isFirst ? ',"members":[' : ',') + batch.map(memberJson).join(',');
      isFirst &&= batch.length === 0;
      last = batch.length < BATCH ? undefined : batch.at(-1);
    } while (last);
    if (!isFirst) yield ']';
  }
}
