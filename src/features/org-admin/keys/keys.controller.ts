import { Controller, Get, Query, Req, Res, type StreamableFile } from '@nestjs/common';
import type { Request, Response } from 'express';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { fileOfList, inEveryFormat, preferredFormat } from '#platform/http/files/line-file.js';
import { Route } from '#platform/http/routing/route.js';
import {
  KEYS_FILE,
  KEYS_JSON,
  KEYS_QUERY,
  keysJson,
  type KeysJson,
  type KeysQuery,
} from './keys.schemas.js';

/** `/api/v1/org/keys`: shows the security keys of all members of the organization to its admins. */
@Controller('api/v1/org/keys')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_READS })
export class KeysOfMembersController {
  constructor(private readonly records: MemberRecords) {}

  @Get()
  @Route({
    operation: 'listMemberKeys',
    summary: 'Lists the security keys of the members',
    answers: { 200: inEveryFormat(KEYS_JSON) },
    refusals: ['too_many'],
  })
  async list(
    @Caller() session: VerifiedSession,
    @Query({ schema: KEYS_QUERY }) asked: KeysQuery,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<StreamableFile | KeysJson> {
    const { format = preferredFormat(request, response), ...query } = asked;
    const admin = adminOf(session);
    if (format === 'json') return keysJson(await this.records.listKeys(admin, query));
    return fileOfList(format, await this.records.keyBatches(admin, query), KEYS_FILE);
  }
}
