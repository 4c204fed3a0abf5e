import { Controller, Get, Inject, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import type { Assignment, Target, TargetRef } from '#domain/admin/access-rules/target.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { isTouchedWithin, RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { isUuid } from '#platform/text/single-line.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { showToAdmin } from '../../shell/show-page.js';
import { becauseWords, peopleWords } from './rule-words.js';
import { shownTarget } from './shown-target.js';
import { pageTarget, TARGET_PAGE, type TargetPath } from './target-path.js';

/** The largest number of assigned people that the form lists, each with a checkbox. */
const MOST_CHECKBOXES = 100;

/** The number of admitted people on one page. */
const PAGE_SIZE = 50;

/**
 * The query of the page. `after` is the position in the list of people. `user` (an id) or `address`
 * (an e-mail address) names the person about whom the admin asks why the target admits the person.
 */
const PAGE_QUERY = z.strictObject({
  after: z.string().refine(isUuid, 'must be the next of a page before').optional(),
  user: z.string().max(64).optional(),
  address: z.string().trim().max(254).optional(),
});
type PageQuery = z.output<typeof PAGE_QUERY>;

/** Serves `/admin/access/{kind}/{id}`: one target, its rule, and the people that it admits. */
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

  /**
   * Shows a target to an admin.
   * @throws DomainError admin_required, invalid_request, not_found
   */
  @Get()
  @Route({ summary: 'Shows a target, its rule and whom it admits' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param({ schema: TARGET_PAGE }) path: TargetPath,
    @Query({ schema: PAGE_QUERY }) { after, user, address }: PageQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'access-target', async (admin, session) => {
      const ref = pageTarget(path);
      const mayName = isTouchedWithin(RECENT_TOUCH.admin, session, this.clock.milliseconds());
      const { target, assignments } = await this.accessRules.show(admin, ref);
      const [admitted, groups, why] = await Promise.all([
        this.accessRules.admitted(admin, ref, { after, limit: PAGE_SIZE }, { mayName }),
        this.accessRules.findGroups(admin, ''),
        this.#why(admin, ref, { user, address }),
      ]);
      return {
        ...shownTarget(target, ref),
        ...shownAssignments(assignments),
        knownGroups: groups.map(({ name }) => name),
        admitted: { ...admitted, words: peopleWords(admitted.count) },
        isFirst: after === undefined,
        why,
        hostLine: this.#hostLine(target, admin.orgId),
      };
    });
  }

  /**
   * Explains to an admin why a target does or does not admit a person; undefined if the query names
   * no person. A person of another organization gets the same answer as an unknown person, so that
   * the answer does not reveal the person.
   */
  async #why(admin: Admin, ref: TargetRef, { user, address }: Pick<PageQuery, 'user' | 'address'>) {
    const asked = user ?? address ?? '';
    if (asked === '') return undefined;
    try {
      const id = user ?? (await this.#idOf(admin, asked));
      const decision = await this.accessRules.check(admin, id, ref);
      const outcome = decision.allowed ? 'Admitted.' : 'Not admitted.';
      return { asked: user === undefined ? asked : '', outcome, words: becauseWords(decision) };
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'not_found')) throw error;
      const words = 'Your organization has no such member.';
      return { asked: user === undefined ? asked : '', outcome: 'No answer.', words };
    }
  }

  /** Returns the id of the member with an e-mail address; the empty string if there is none. */
  async #idOf(admin: Admin, address: string): Promise<string> {
    const { people } = await this.accessRules.findNamed(admin, [address], []);
    return people[0]?.id ?? '';
  }

  /**
   * Returns the command by which a host joins a group of hosts; undefined for another kind of
   * target.
   */
  #hostLine({ kind, name, logins }: Target, orgId: string): string | undefined {
    if (kind !== 'host_group') return undefined;
    const names = `--organization ${orgId} --group ${name} --login ${logins.join(',')}`;
    return `curl -fsS ${this.#baseUrl}/install-host.sh | sudo sh -s -- ${names}`;
  }
}

/**
 * Returns the assignments that the form shows: all groups, and the first {@link MOST_CHECKBOXES}
 * people.
 */
function shownAssignments(assignments: readonly Assignment[]) {
  const people = assignments.flatMap((each) => ('user' in each ? [each] : []));
  const groups = assignments.flatMap((each) => ('group' in each ? [each] : []));
  return {
    people: people.slice(0, MOST_CHECKBOXES),
    furtherPeople: Math.max(0, people.length - MOST_CHECKBOXES),
    groups,
  };
}
