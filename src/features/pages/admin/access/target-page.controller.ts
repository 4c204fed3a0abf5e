import { Controller, Get, Inject, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import { ADMITTED_QUERY, type AdmittedQuery } from '#domain/admin/access-rules/target-query.js';
import type { Target, TargetRef } from '#domain/admin/access-rules/target.js';
import { isTouchedWithin, RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { becauseWords, conditionWords, KIND_WORDS, ruleWords } from './rule-words.js';
import { pageTarget, TARGET_PAGE, type TargetPath } from './target-path.js';

/** The people of a page, and the id of a person in a question. */
const PAGE_QUERY = ADMITTED_QUERY.extend({ user: z.string().max(64).optional() });

/** Serves `/admin/access/{kind}/{id}`: one target, its rule, and the people whom it admits. */
@Controller('admin/access/:kind/:id')
@Route(PAGE_ROUTE)
export class TargetPageController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly accessRules: AccessRules,
    private readonly clock: Clock,
    private readonly views: Views,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /** @throws DomainError admin_required, not_found */
  @Get()
  @Route({ summary: 'Shows a target, its rule and whom it admits' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param({ schema: TARGET_PAGE }) path: TargetPath,
    @Query({ schema: PAGE_QUERY }) query: AdmittedQuery & { readonly user?: string | undefined },
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'access-target', async (admin, session) => {
      const ref = pageTarget(path);
      const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds());
      const { target, assignments } = await this.accessRules.show(admin, ref);
      const { user, ...part } = query;
      const [admitted, groups, decision] = await Promise.all([
        this.accessRules.admitted(admin, ref, part, { mayName }),
        this.accessRules.findGroups(admin, ''),
        user === undefined ? undefined : this.accessRules.check(admin, user, ref),
      ]);
      return {
        ...shownTarget(target, ref),
        people: assignments.filter((each) => 'user' in each),
        groups: assignments.filter((each) => 'group' in each),
        knownGroups: groups.map(({ name }) => name),
        admitted,
        why: decision && { allowed: decision.allowed, words: becauseWords(decision) },
        hostLine: this.#hostLine(target, admin.orgId),
        issuer: this.#baseUrl,
      };
    });
  }

  /** Returns the whole line that joins a host to a group; undefined for another kind of target. */
  #hostLine({ kind, name, logins }: Target, orgId: string): string | undefined {
    if (kind !== 'host_group') return undefined;
    const names = `--organization ${orgId} --group ${name} --login ${logins.join(',')}`;
    return `curl -fsS ${this.#baseUrl}/install-host.sh | sudo sh -s -- ${names}`;
  }
}

/** Returns a target for the templates. */
export function shownTarget(target: Target, ref: TargetRef) {
  const { conditions } = target;
  const { touchWithinSeconds: seconds } = conditions;
  return {
    path: `/admin/access/${ref.kind}/${encodeURIComponent(ref.id)}`,
    api: `/api/v1/org/access/${ref.kind}/${encodeURIComponent(ref.id)}`,
    ref,
    tag: `"${target.version}"`,
    target,
    kindWords: target.isCluster ? 'Cluster' : KIND_WORDS[ref.kind][0],
    isMade: ref.kind === 'aws_role' || ref.kind === 'host_group',
    rule: ruleWords(target),
    conditions: conditionWords(conditions),
    minutes: seconds === null ? '' : String(seconds / 60),
  };
}
