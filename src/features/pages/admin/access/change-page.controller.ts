import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { endedWords } from '#domain/access-revocation/ended-words.js';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import type { HiddenPreview, RulePreview } from '#domain/admin/access-rules/rule-preview.js';
import type { Assignment, TargetRef, WantedRule } from '#domain/admin/access-rules/target.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { isTouchedWithin, RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { bodyOf, PROPOSAL, proposedRule, type Proposal } from './proposal.js';
import { conditionWords, notRecalledWords, peopleWords, wantedWords } from './rule-words.js';
import { shownTarget } from './shown-target.js';
import { pageTarget, TARGET_PAGE, targetAddress, type TargetPath } from './target-path.js';

/**
 * Serves `/admin/access/{kind}/{id}/change` and `/delete`. Before an admin confirms the change,
 * these pages show which people would gain or lose access, and which credentials would end.
 */
@Controller('admin/access/:kind/:id')
@Route(PAGE_ROUTE)
export class ChangePageController {
  constructor(
    private readonly accessRules: AccessRules,
    private readonly clock: Clock,
    private readonly views: Views,
  ) {}

  /**
   * Shows an admin which people would gain or lose access to a target by a proposed rule.
   * @throws DomainError admin_required, invalid_request, not_found
   */
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
      const { target, assignments } = await this.accessRules.show(admin, ref);
      const { rule, unknown } = await this.#ruleOf(admin, proposal, assignments);
      const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds());
      const preview = await this.accessRules.preview(admin, ref, rule, { mayName });
      return {
        ...shownTarget(target, ref),
        unknown,
        isStale: (proposal.version ?? target.version) !== target.version,
        wanted: { rule: wantedWords(rule), conditions: conditionWords(rule.conditions) },
        body: bodyOf(rule),
        ...shownPreview(preview, afterTouch(response, ref)),
      };
    });
  }

  /**
   * Shows an admin which people would lose access to a target by its deletion.
   * @throws DomainError admin_required, not_found
   */
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
      return { ...shownTarget(target, ref), ...shownPreview(preview, afterTouch(response, ref)) };
    });
  }

  /** Returns the proposed rule, and the names in the form that match no person and no group. */
  async #ruleOf(
    admin: Admin,
    proposal: Proposal,
    assignments: readonly Assignment[],
  ): Promise<{ readonly rule: WantedRule; readonly unknown: readonly string[] }> {
    const { add_people: people, add_group: groups, remove_people: leaving } = proposal;
    const [added, removed] = await Promise.all([
      this.accessRules.findNamed(admin, people, groups),
      this.accessRules.findNamed(admin, leaving, []),
    ]);
    return {
      rule: proposedRule(proposal, assignments, { added, removed }),
      unknown: [...added.unknown, ...removed.unknown],
    };
  }
}

/** The largest number of characters of a URL to which the login page can lead back. */
const LONGEST_RETURN = 2048;

/**
 * Returns the URL that opens after the admin has touched the key. It is the URL of this page, or
 * that of the target's page if the first one is too long.
 */
function afterTouch({ req }: Response, ref: TargetRef): string {
  return req.originalUrl.length > LONGEST_RETURN ? targetAddress(ref) : req.originalUrl;
}

/** The text that replaces a number if the admin has not touched the security key recently. */
const HIDDEN = 'shown after a touch';

/**
 * Returns the forecast of a change as the template shows it. Its link `touch` leads to the login
 * page, on which the admin touches the key again.
 */
function shownPreview(preview: RulePreview | HiddenPreview, address: string) {
  const touch = `/login?again=true&redirect_to=${encodeURIComponent(address)}`;
  if ('hidden' in preview) {
    const side = { people: null, words: HIDDEN };
    return { touch, gains: side, loses: side, ends: HIDDEN, notRecalled: [] };
  }
  const { gains, loses, ends, notRecalled } = preview;
  return {
    touch,
    gains: { ...gains, words: peopleWords(gains.count) },
    loses: { ...loses, words: peopleWords(loses.count) },
    ends: ends === null ? 'more than this page counts' : endedWords(ends),
    notRecalled: notRecalled.map(notRecalledWords),
  };
}
