import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Projection } from '../query/projection.js';
import {
  ScimGroupsRepository,
  type ScimGroup,
  type ScimMember,
} from '#domain/directory/groups.repository.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import type { ScimPage } from '../query/search-table.repository.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import { ScimAnswers } from './scim-answers.service.js';
import type { ScimQuery } from '../query/scim-query.js';
import { entityTag, groupHead, locationOf, memberJson } from './resource-json.js';

/** Members that are held at a time. */
const BATCH = 2000;

/** Members up to which a group is shown after a PATCH. */
const MOST_SHOWN = 200;

/** Groups as they are answered: their members stream from the database to the client, some at a time. */
@Injectable()
export class GroupAnswers {
  constructor(
    private readonly answers: ScimAnswers,
    private readonly work: TenantWork,
    private readonly groups: ScimGroupsRepository,
  ) {}

  /** One group; 304 where the client has this version. */
  async one(
    response: Response,
    caller: ScimActor,
    status: number,
    group: ScimGroup,
    projection: Projection,
  ): Promise<void> {
    if (this.answers.isKnown(response, entityTag(group))) return;
    if (status === 201) {
      response.setHeader('Location', locationOf(this.answers.base, 'Groups', group.id));
    }
    await this.answers.stream(response, status, this.#texts(caller, [group], projection));
  }

  /** After a PATCH: the group, unless it is large and nothing in particular was asked for (RFC 7644 §3.5.2). */
  async patched(
    response: Response,
    caller: ScimActor,
    group: ScimGroup,
    projection: Projection,
  ): Promise<void> {
    if (projection.isDefault && (await this.#isLarge(caller, group))) {
      response.setHeader('ETag', entityTag(group));
      response.status(204).end();
    } else await this.one(response, caller, 200, group, projection);
  }

  async #isLarge({ orgId }: ScimActor, { id }: ScimGroup): Promise<boolean> {
    return !(await this.work.bounded(orgId, (tx) => this.groups.hasAtMost(tx, id, MOST_SHOWN)));
  }

  /** A page of them. @param before resources of another type that come first, and how many they were */
  async list(
    response: Response,
    caller: ScimActor,
    { totalResults, resources, nextCursor }: ScimPage<ScimGroup>,
    query: ScimQuery,
    before?: AsyncGenerator<string, number>,
  ): Promise<void> {
    const head = this.answers.listHead({
      totalResults,
      startIndex: query.search.page.kind === 'index' ? query.startIndex : undefined,
      nextCursor,
    });
    const texts = this.#listTexts(head, caller, resources, query, before);
    await this.answers.stream(response, 200, texts);
  }

  async *#listTexts(
    head: string,
    caller: ScimActor,
    groups: readonly ScimGroup[],
    { projection }: ScimQuery,
    before?: AsyncGenerator<string, number>,
  ): AsyncGenerator<string, void> {
    yield head;
    const others = before ? yield* before : 0;
    if (others > 0 && groups.length > 0) yield ',';
    yield* this.#texts(caller, groups, projection);
    yield this.answers.listTail(others + groups.length);
  }

  /** Groups with commas between them, piece by piece. */
  async *#texts(
    caller: ScimActor,
    groups: readonly ScimGroup[],
    projection: Projection,
  ): AsyncGenerator<string, void> {
    const withMembers = projection.needsMembers;
    for (const [index, group] of groups.entries()) {
      yield `${index === 0 ? '' : ','}${groupHead(group, projection, this.answers.base)}`;
      if (withMembers) yield* this.#membersOf(caller, group);
      yield '}';
    }
  }

  /** `,"members":[…]`, or nothing where there are none. */
  async *#membersOf({ orgId }: ScimActor, { id }: ScimGroup): AsyncGenerator<string, void> {
    let last: ScimMember | undefined;
    let isFirst = true;
    do {
      const after = last?.userId;
      const batch: readonly ScimMember[] = await this.work.costly(
        orgId,
        (tx) => this.groups.members(tx, id, after, BATCH),
        PATIENCE_DURING_RESPONSE,
      );
      if (batch.length > 0)
        yield (
          (isFirst ? ',"members":[' : ',') +
          batch.map((member) => memberJson(member, this.answers.base)).join(',')
        );
      isFirst &&= batch.length === 0;
      last = batch.length < BATCH ? undefined : batch.at(-1);
    } while (last);
    if (!isFirst) yield ']';
  }
}
