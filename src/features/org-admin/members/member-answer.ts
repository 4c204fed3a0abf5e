import type { StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { MemberRecords } from '#domain/admin/members/member-records.service.js';
import { MEMBER_QUERY } from '#domain/admin/members/member-search.js';
import type { ListedMember } from '#domain/admin/members/member-search.repository.js';
import type { Reader } from '#domain/directory/api-tokens/reader.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  fileOfList,
  FORMAT_QUERY,
  inEveryFormat,
  preferredFormat,
  type ListFile,
} from '#platform/http/files/line-file.js';
import type { PolicyChanges } from '#platform/http/routing/route-policy.js';
import { columnsOfJson } from '#platform/text/csv.js';
import {
  LISTED_MEMBER_JSON,
  listedMemberJson,
  MEMBERS_JSON,
  membersJson,
  type ListedMemberJson,
  type MembersJson,
} from './members.schemas.js';

/** The query of a list of members in the API. `format` selects a page as JSON, or a file. */
export const MEMBERS_QUERY = MEMBER_QUERY.safeExtend(FORMAT_QUERY);
/** The query of a list of members in the API after validation, as the handler gets it. */
export type MembersQuery = z.output<typeof MEMBERS_QUERY>;

/** The answers and the errors that all routes with a list of members share. */
export const MEMBERS_ANSWERS = {
  answers: { 200: inEveryFormat(MEMBERS_JSON) },
  refusals: ['too_many'],
} as const satisfies PolicyChanges;

/**
 * The format of a file of members. A line has the same facts about a member as a page of the API.
 */
const MEMBERS_FILE: ListFile<ListedMember, ListedMemberJson> = {
  name: 'members',
  render: listedMemberJson,
  columns: columnsOfJson(Object.keys(LISTED_MEMBER_JSON.shape)),
};

/** A request for the list of members, with its response. */
interface MembersExchange {
  readonly asked: MembersQuery;
  readonly request: Request;
  readonly response: Response;
}

/**
 * Answers a request for the members of an organization, for an admin or a program. The answer is a
 * page, or a file with all members that match.
 *
 * @throws DomainError invalid_request for a file that is not sorted by the creation of the
 *   accounts. In any other order a member could move while the file is read, and would then be
 *   missing or occur twice
 */
export async function answerMembers(
  records: MemberRecords,
  reader: Reader,
  { asked, request, response }: MembersExchange,
): Promise<StreamableFile | MembersJson> {
  const { format = preferredFormat(request, response), ...query } = asked;
  if (format === 'json') return membersJson(await records.list(reader, query));
  if (query.sort !== undefined && query.sort !== 'added') {
    throw new DomainError('invalid_request', 'sort: a file has the order added. Leave sort out.');
  }
  return fileOfList(format, await records.batches(reader, query), MEMBERS_FILE);
}
