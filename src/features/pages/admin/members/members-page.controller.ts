import { Controller, Get, Query, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import type { HeldModels } from '#domain/admin/members/key-search.repository.js';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import {
  MEMBER_QUERY,
  UNKNOWN_MODEL,
  type MemberQuery,
} from '#domain/admin/members/member-search.js';
import { MOST_FOUND } from '#domain/admin/members/member-conditions.repository.js';
import type { ListedMember } from '#domain/admin/members/member-search.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';

/**
 * The number of members on a page, as text, because it is the default of the query parameter
 * `limit`.
 */
const PAGE_SIZE = '50';

/**
 * The query of the page has the same parameters as the list of members in the API. An empty field
 * is left out, because a form also sends fields that the user did not fill.
 */
const PAGE_QUERY = z.preprocess((query) => {
  const filled = Object.entries(query ?? {}).filter(([, value]) => value !== '');
  return { sort: 'address', limit: PAGE_SIZE, ...Object.fromEntries(filled) };
}, MEMBER_QUERY);

/** Serves `/admin/members`, where admins find the members of their organization. */
@Controller('admin/members')
@Route(PAGE_ROUTE)
export class MembersPageController {
  constructor(
    private readonly records: MemberRecords,
    private readonly views: Views,
  ) {}

  /**
   * Lists the members for an admin.
   * @throws DomainError admin_required, invalid_request
   */
  @Get()
  @Route({ summary: 'Lists the members of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: PAGE_QUERY }) query: MemberQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'members', async (admin) => {
      const { members, next, isComplete, models } = await this.records.listWithModels(admin, query);
      const chosen = choicesOf(response.req.query);
      return {
        members: members.map(shown),
        chosen,
        models: modelChoices(models, query.model),
        files: members.length > 0 && isComplete ? filesOf(chosen) : [],
        filters: Object.keys(chosen).filter((name) => !['q', 'after'].includes(name)).length,
        isFiltered: Object.keys(chosen).some((name) => name !== 'sort' && name !== 'after'),
        first: query.after && linkTo(chosen, undefined),
        next: next === null ? undefined : linkTo(chosen, next),
        mostFound: isComplete ? undefined : MOST_FOUND,
      };
    });
  }
}

/**
 * Returns the query parameters of the visitor as texts, for the links to other pages. They need no
 * check here, because the schema of the query has already checked them.
 */
function choicesOf(query: Request['query']): Readonly<Record<string, string>> {
  const texts = Object.entries(query).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
  );
  return Object.fromEntries(texts);
}

/**
 * Returns the URL of a page of the members with the same filters. `after` is the position in the
 * list after which the page begins; undefined for the first page.
 */
function linkTo(chosen: Readonly<Record<string, string>>, after: string | undefined): string {
  const { after: _, ...filters } = chosen;
  const query = new URLSearchParams({ ...filters, ...(after !== undefined && { after }) });
  return query.size === 0 ? '/admin/members' : `/admin/members?${query.toString()}`;
}

/**
 * Returns the choices of the filter by model. They are the models of the members' keys and the
 * chosen model, even if no member has such a key.
 */
function modelChoices({ names, hasUnknown }: HeldModels, chosen: string | undefined) {
  const isUnknown = chosen === UNKNOWN_MODEL;
  const isMissing = chosen !== undefined && !isUnknown && !names.includes(chosen);
  const known = isMissing ? [...names, chosen].toSorted() : names;
  return [
    ...known.map((name) => ({ value: name, text: name })),
    ...(hasUnknown || isUnknown
      ? [{ value: UNKNOWN_MODEL, text: 'A model that is not known' }]
      : []),
  ];
}

/**
 * The parameters that choose a page of the list and its order. The links to files leave them out,
 * because a file contains all members in a fixed order.
 */
const OF_PAGES: ReadonlySet<string> = new Set(['after', 'limit', 'sort']);

/**
 * Returns the links by which an admin downloads all results of a search as files: the members, and
 * their security keys.
 */
function filesOf(query: Readonly<Record<string, string>>) {
  const filters = Object.entries(query).filter(([name]) => !OF_PAGES.has(name));
  return [
    { name: 'Members', path: '/api/v1/org/members' },
    { name: 'Security keys', path: '/api/v1/org/keys' },
  ].map(({ name, path }) => ({
    name,
    formats: (['csv', 'ndjson'] as const).map((format) => ({
      name: format.toUpperCase(),
      href: `${path}?${new URLSearchParams([...filters, ['format', format]]).toString()}`,
    })),
  }));
}

/**
 * Returns a member as a row of the table shows it. If several keys are of one model, the model is
 * shown once, with their number.
 */
function shown(member: ListedMember) {
  const models = Map.groupBy(member.aaguids, (aaguid) => modelName(aaguid) ?? 'Security key');
  return {
    ...member,
    models: [...models].map(([name, keys]) => ({
      name: keys.length === 1 ? name : `${keys.length} × ${name}`,
      fips: isFipsModel(keys[0] ?? null),
    })),
    lastUsed: member.lastUsedAt && moment(member.lastUsedAt),
    tied: tiedWords(member),
  };
}

/**
 * Lists in words how a member is tied to other accounts: as a twin, by a link or by a take-over. It
 * also says if an e-mail address of the member cannot be used to sign in.
 */
function tiedWords({ email, ties }: ListedMember): string[] {
  const words: [boolean, string][] = [
    [ties.twinOf.length > 0, 'Twin'],
    [ties.twins.length > 0, 'Has a twin'],
    [ties.linkedTo.length > 0, 'Linked'],
    [ties.takenOverAt !== null, 'Taken over'],
    [ties.withheldAddress !== null, 'Address withheld'],
    [ties.sharedAddress !== null, 'Shared address'],
    [email === null && ties.withheldAddress === null, 'No address'],
  ];
  return words.flatMap(([isSo, word]) => (isSo ? word : []));
}
