import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { endedWords } from '#domain/access-revocation/ended-words.js';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import type { RulePreview } from '#domain/admin/access-rules/rule-preview.js';
import {
  LONGEST_AGE,
  MOST_ASSIGNMENTS,
  type WantedRule,
} from '#domain/admin/access-rules/target.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { isTouchedWithin, RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { isUuid } from '#platform/text/single-line.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { conditionWords, notRecalledWords, wantedWords } from './rule-words.js';
import { shownTarget } from './target-page.controller.js';
import { pageTarget, TARGET_PAGE, type TargetPath } from './target-path.js';

const ids = z
  .union([z.string(), z.array(z.string())])
  .default([])
  .transform((one) => [one].flat())
  .pipe(z.array(z.string().refine(isUuid, 'must be an id')).max(MOST_ASSIGNMENTS));

const lines = z
  .string()
  .max(16_384)
  .default('')
  .transform((text) => [...new Set(text.split(/[\n,]/).map((line) => line.trim()))])
  .transform((texts) => texts.filter((text) => text !== ''))
  .pipe(z.array(z.string().max(256)).max(MOST_ASSIGNMENTS));

/** The fields of the form that proposes a rule. */
const PROPOSAL = z.strictObject({
  access: z.enum(['everyone', 'assigned']),
  minutes: z
    .string()
    .trim()
    .regex(/^(\d{1,4}(\.\d{1,4})?)?$/, 'must be a number of minutes')
    .default(''),
  fips: z.literal('on').optional(),
  verification: z.literal('on').optional(),
  user: ids,
  group: ids,
  add_people: lines,
  add_groups: lines,
});
type Proposal = z.output<typeof PROPOSAL>;

/**
 * Serves `/admin/access/{kind}/{id}/change` and `/delete`: who gains, who loses and what ends,
 * before an admin confirms.
 */
@Controller('admin/access/:kind/:id')
@Route(PAGE_ROUTE)
export class ChangePageController {
  constructor(
    private readonly accessRules: AccessRules,
    private readonly clock: Clock,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required, not_found */
  @Get('change')
  @Route({ summary: 'Shows who gains and who loses by another rule' })
  async change(
    @Caller() caller: LiveSession | undefined,
    @Param({ schema: TARGET_PAGE }) path: TargetPath,
    @Query({ schema: PROPOSAL }) proposal: Proposal,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'access-change', async (admin, session) => {
      const ref = pageTarget(path);
      const { target } = await this.accessRules.show(admin, ref);
      const { rule, unknown } = await this.#ruleOf(admin, proposal);
      const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds());
      const preview = await this.accessRules.preview(admin, ref, rule, { mayName });
      return {
        ...shownTarget(target, ref),
        unknown,
        wanted: { rule: wantedWords(rule), conditions: conditionWords(rule.conditions) },
        body: bodyOf(rule),
        ...shownPreview(preview),
      };
    });
  }

  /** @throws DomainError admin_required, not_found */
  @Get('delete')
  @Route({ summary: 'Shows what ends with a role or a group of hosts' })
  async remove(
    @Caller() caller: LiveSession | undefined,
    @Param({ schema: TARGET_PAGE }) path: TargetPath,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'access-delete', async (admin, session) => {
      const ref = pageTarget(path);
      const { target } = await this.accessRules.show(admin, ref);
      const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds());
      const preview = await this.accessRules.preview(admin, ref, 'deleted', { mayName });
      return { ...shownTarget(target, ref), ...shownPreview(preview) };
    });
  }

  /** Returns the proposed rule, and the texts of the form that name no person and no group. */
  async #ruleOf(
    admin: Admin,
    proposal: Proposal,
  ): Promise<{ readonly rule: WantedRule; readonly unknown: readonly string[] }> {
    const { access, minutes, fips, verification, user, group } = proposal;
    const { add_people: addresses, add_groups: names } = proposal;
    const named = await this.accessRules.findNamed(admin, addresses, names);
    const seconds = Math.min(Math.round(Number(minutes) * 60), LONGEST_AGE);
    const isAssigned = access === 'assigned';
    const users = [...user, ...named.people.map(({ id }) => id)];
    const groups = [...group, ...named.groups.map(({ id }) => id)];
    const rule = {
      access,
      conditions: {
        touchWithinSeconds: seconds === 0 ? null : seconds,
        models: fips === undefined ? null : ('fips-only' as const),
        userVerification: verification === undefined ? null : ('required' as const),
      },
      users: isAssigned ? [...new Set(users)] : [],
      groups: isAssigned ? [...new Set(groups)] : [],
    };
    return { rule, unknown: named.unknown };
  }
}

/** Returns the members of the body that sets a rule, each as JSON. */
function bodyOf({ access, conditions, users, groups }: WantedRule) {
  const { touchWithinSeconds: seconds, models, userVerification } = conditions;
  return {
    access,
    conditions: JSON.stringify({
      ...(seconds !== null && { touch_within_seconds: seconds }),
      ...(models !== null && { models }),
      ...(userVerification !== null && { user_verification: userVerification }),
    }),
    assignments: JSON.stringify([
      ...users.map((user) => ({ user })),
      ...groups.map((group) => ({ group })),
    ]),
  };
}

function shownPreview({ gains, loses, ends, notRecalled }: RulePreview) {
  return {
    gains,
    loses,
    ends: ends === null ? 'more than a page counts' : endedWords(ends),
    notRecalled: notRecalled.map(notRecalledWords),
  };
}
