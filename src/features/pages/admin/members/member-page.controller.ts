import { Controller, Get, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { endedWords } from '#domain/access-revocation/ended-words.js';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { EnrollmentPasses } from '#domain/keys/enrollment-passes/enrollment-passes.service.js';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { searchOf } from '#domain/admin/audit-search/audit-question.js';
import { AccessRules } from '#domain/admin/access-rules/access-rules.service.js';
import { MOST_LISTED } from '#domain/admin/members/member-details.repository.js';
import { MemberRecords, type MemberRecord } from '#domain/admin/members/member-records.service.js';
import type { RelatedMember } from '#domain/admin/members/related-members.repository.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { deviceOf } from '#platform/text/device-name.js';
import { eventDays, type EventDay } from '../../shell/event-days.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';
import { reachWords } from '../access/rule-words.js';
import { lineOf } from '../event-line.js';

/** The largest number of targets that the page of a member lists. */
const MOST_TARGETS = 50;

/** The number of events on the page of a member. */
const EVENTS_SHOWN = 10;

/** Serves `/admin/members/{id}`, where admins see a member and can end or change the account. */
@Controller('admin/members')
@Route(PAGE_ROUTE)
export class MemberPageController {
  constructor(
    private readonly records: MemberRecords,
    private readonly passes: EnrollmentPasses,
    private readonly accessRules: AccessRules,
    private readonly auditEvents: AuditEvents,
    private readonly views: Views,
  ) {}

  /**
   * Shows a member to an admin.
   * @throws DomainError admin_required; not_found for an id that is not a member of the
   *   organization
   */
  @Get(':id')
  @Route({ summary: 'Shows a member of the organization' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'member', async (admin) => {
      const record = await this.records.show(admin, id);
      const pass = await this.passes.ofMember(admin, id);
      const part = { limit: MOST_TARGETS };
      const reach = await this.accessRules.reachOf(admin, id, part, { onlyReached: true });
      return {
        isSelf: record.member.id === admin.id,
        pass: pass && { ...pass, expires: moment(pass.expiresAt) },
        reach: reachWords(reach, record.member.id),
        hasMoreReach: reach.next !== null,
        days: await this.#latestEvents(admin, record.member.id),
        ...shown(record),
      };
    });
  }

  /**
   * Returns the latest events of a member; undefined if the search is too costly now, which must
   * not hide the rest of the page.
   */
  async #latestEvents(admin: Admin, person: string): Promise<EventDay[] | undefined> {
    const query = { search: searchOf({ person }), after: undefined, limit: EVENTS_SHOWN };
    try {
      const { events } = await this.auditEvents.page(admin, query);
      return eventDays(events.map(lineOf));
    } catch (error) {
      if (error instanceof DomainError && error.code === 'too_many') return undefined;
      throw error;
    }
  }
}

/** The words for the relation between another account and the member of the page. */
const RELATIONS = {
  twin_of: 'The record of your identity provider. When it ends, the member on this page ends.',
  twin: 'A twin: this account signed in itself, and ends when the member on this page ends.',
  linked: 'A linked record: when one of the two ends, the other is deactivated.',
  holder: 'Signs in with the address of the member on this page.',
  shares_address: 'Another record with the same address.',
} as const satisfies Record<RelatedMember['relation'], string>;

/**
 * Returns the kind of tie to another account that the page offers to end: a twin, a take-over or a
 * linked record; undefined if there is none.
 */
function partingOf({ ties, scimManaged }: MemberRecord['member']) {
  if (ties.twinOf.length > 0) return 'twin';
  if (scimManaged && ties.takenOverAt !== null) return 'taken over';
  return ties.linkedTo.length > 0 ? 'linked' : undefined;
}

/**
 * Returns the record of a member as the template shows it. The forms send `tag` back, so that a
 * change is refused if the member has changed meanwhile.
 */
function shown(record: MemberRecord) {
  const { member, ending, endingOfTies, lastLoginAt, related } = record;
  const { takenOverAt } = member.ties;
  return {
    member: { ...member, created: moment(member.createdAt) },
    takenOver: takenOverAt && moment(takenOverAt),
    related: related.map((other) => ({ ...other, words: RELATIONS[other.relation] })),
    part: partingOf(member),
    endsWith: member.ties.twins.length + member.ties.linkedTo.length,
    tag: `W/"${member.revision}"`,
    lastLogin: lastLoginAt && moment(lastLoginAt),
    ends: {
      deactivate: endedWords(ending.deactivate),
      revoke: endedWords(ending.revoke_credentials),
      remove: endedWords(ending.remove),
      part: endedWords(endingOfTies.part),
      giveAddress: endedWords(endingOfTies.giveAddress),
    },
    liveCertificates: ending.revoke_credentials['certificates'] ?? 0,
    openSessions: ending.revoke_credentials['sessions'] ?? 0,
    mostListed: MOST_LISTED,
    keys: record.keys.map(shownKey),
    sessions: record.sessions.map((session) => ({
      ...session,
      title: session.client_id === null ? 'A browser' : (session.client_name ?? session.client_id),
      device: deviceOf(session.device),
      opened: at(session.created_at),
      expires: at(session.expires_at),
    })),
    certificates: record.certificates.map((certificate) => ({
      ...certificate,
      issued: at(certificate.issued_at),
      ends: at(certificate.valid_before),
    })),
    applications: record.applications.map((application) => ({
      ...application,
      used: at(application.last_granted_at),
    })),
    owned: record.owned,
    apiTokens: record.apiTokens.map(({ name }) => name),
    eventReceivers: record.eventReceivers.map(({ name }) => name),
    githubTokens: record.githubTokens.map((token) => ({
      ...token,
      issued: at(token.issued_at),
      ends: at(token.expires_at),
    })),
  };
}

function shownKey(key: MemberRecord['keys'][number]) {
  return {
    ...key,
    model: modelName(key.aaguid) ?? 'Security key',
    fips: isFipsModel(key.aaguid),
    added: at(key.created_at),
    lastUsed: key.last_used_at === null ? undefined : at(key.last_used_at),
  };
}

function at(timestamp: string) {
  return moment(new Date(timestamp));
}
