import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import { TARGET_QUERY, type TargetQuery } from '#domain/admin/access-rules/target-query.js';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { reachWords } from '../access/rule-words.js';

/**
 * The query of the page: a part of the name of a target to search for, and the position after which
 * the page begins. An empty field of the form is left out.
 */
const PAGE_QUERY = z.preprocess((query) => {
  const filled = Object.entries(query ?? {}).filter(([, value]) => value !== '');
  return { limit: '50', ...Object.fromEntries(filled) };
}, TARGET_QUERY);

/**
 * Serves `/admin/members/{id}/reach`: lists every target that admits a member (hosts, roles,
 * applications), in pages.
 */
@Controller('admin/members')
@Route(PAGE_ROUTE)
export class MemberReachPageController {
  constructor(
    private readonly records: MemberRecords,
    private readonly accessRules: AccessRules,
    private readonly views: Views,
  ) {}

  /**
   * Shows an admin the targets that a member can use, such as applications, groups of hosts and AWS
   * roles.
   *
   * @throws DomainError admin_required, invalid_request, not_found
   */
  @Get(':id/reach')
  @Route({ summary: 'Lists what a member of the organization reaches' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Query({ schema: PAGE_QUERY }) query: TargetQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'member-reach', async (admin) => {
      const { member } = await this.records.show(admin, id);
      const reach = await this.accessRules.reachOf(admin, id, query, { onlyReached: true });
      const path = `/admin/members/${member.id}`;
      return {
        member,
        path,
        q: query.q,
        isFirst: query.after === undefined,
        reach: reachWords(reach, member.id),
        next: reach.next && nextPage(path, query.q, reach.next),
      };
    });
  }
}

function nextPage(path: string, q: string | undefined, after: string): string {
  return `${path}/reach?${new URLSearchParams({ ...(q !== undefined && { q }), after }).toString()}`;
}
