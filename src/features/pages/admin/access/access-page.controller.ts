import { Controller, Get, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { TARGET_KINDS } from '#domain/access/reach/decision.js';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import { refOf, type Target } from '#domain/admin/access-rules/target.js';
import { TARGET_QUERY, type TargetQuery } from '#domain/admin/access-rules/target-query.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import { isTouchedWithin, RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Caller } from '#platform/http/access/caller.js';
import { jsonTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { conditionWords, KIND_WORDS, kindWords, ruleWords } from './rule-words.js';
import { targetAddress } from './target-path.js';

/**
 * The number of targets on one page, as text, because it is the default of the query parameter
 * `limit`.
 */
const PAGE_SIZE = '50';

/**
 * The query of the page has the same parameters as the list of targets in the API. An empty field
 * is left out, because a form also sends fields that the user did not fill.
 */
const PAGE_QUERY = z.preprocess((query) => {
  const filled = Object.entries(query ?? {}).filter(([, value]) => value !== '');
  return { limit: PAGE_SIZE, ...Object.fromEntries(filled) };
}, TARGET_QUERY);

/**
 * Serves `/admin/access`: lists the targets of the organization (applications, roles, hosts), and
 * the rule by which each target admits people.
 */
@Controller('admin/access')
@Route(PAGE_ROUTE)
export class AccessPageController {
  constructor(
    private readonly accessRules: AccessRules,
    private readonly organizationAdmin: OrganizationAdmin,
    private readonly clock: Clock,
    private readonly views: Views,
  ) {}

  /**
   * Shows the list of targets to an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows who may reach what' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: PAGE_QUERY }) query: TargetQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'access', async (admin, session) => {
      const [{ targets, next }, settings] = await Promise.all([
        this.accessRules.list(admin, query),
        this.organizationAdmin.show(admin),
      ]);
      return {
        chosen: { kind: query.kind, q: query.q },
        isFirst: query.after === undefined,
        kinds: TARGET_KINDS.map((kind) => ({ kind, words: KIND_WORDS[kind][1] })),
        targets: targets.map(listed),
        next: next && nextPage(query, next),
        isTouched: isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds()),
        awsRoles: settings.aws_roles,
        tag: jsonTag(settings),
      };
    });
  }
}

function nextPage({ kind, q }: TargetQuery, after: string): string {
  const next = new URLSearchParams({ ...(kind && { kind }), ...(q && { q }), after });
  return `/admin/access?${next.toString()}`;
}

function listed(target: Target) {
  const ref = refOf(target);
  return {
    href: targetAddress(ref),
    id: ref.id,
    name: target.name,
    kind: kindWords(target),
    rule: ruleWords(target),
    isOpen: target.access === 'everyone',
    conditions: conditionWords(target.conditions),
    detail: target.roleArn ?? target.hosts.join(', '),
  };
}
