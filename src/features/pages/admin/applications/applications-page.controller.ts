import { Controller, Get, Inject, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import {
  ApplicationNotices,
  type ApplicationSignalsState,
} from '#domain/oauth/applications/application-notices.service.js';
import { endpointsOf } from '#domain/oauth/applications/endpoints.js';
import { ManagedApplications } from '#domain/oauth/applications/managed-applications.service.js';
import { registrationOf } from '#domain/oauth/applications/registration-metadata.js';
import {
  TYPES,
  usesSecret,
  type ApplicationType,
} from '#domain/oauth/applications/registration.js';
import {
  applicationVersion,
  type ApplicationManager,
  type ClientApplication,
} from '#domain/oauth/applications/applications.repository.js';
import type { ClientSecret } from '#domain/oauth/clients/clients.repository.js';
import type { NoticesOfClient } from '#domain/oauth/logout-notices/dead-letters.repository.js';
import { endsSoon, lastSecretEnd } from '#domain/oauth/clients/secret-expiry.js';
import type { LiveSession, VerifiedSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { entityTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';
import { clusterFields, fieldsOf, KINDS } from './form-fields.js';

const LIST = z.object({
  after: z
    .string()
    .max(64)
    .regex(/^[\w-]*$/)
    .default(''),
});
const NEW = z.object({ type: z.string().max(32).default('') });

/**
 * Serves `/admin/applications`: the applications of an organization, their settings and secrets.
 */
@Controller('admin/applications')
@Route(PAGE_ROUTE)
export class ApplicationsPageController {
  constructor(
    private readonly applications: ManagedApplications,
    private readonly notices: ApplicationNotices,
    private readonly clock: Clock,
    private readonly views: Views,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * Shows the list of applications to an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the applications of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: LIST }) { after }: z.output<typeof LIST>,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-applications', async (_, session) => {
      const { applications, next } = await this.applications.listWithFacts(
        managerOf(session),
        after,
      );
      const now = this.clock.now();
      const figures = await this.notices.figures(session.user.orgId ?? '');
      return {
        after,
        next,
        notices: figures.map((one) => ({ ...one, oldest: one.oldest && moment(one.oldest) })),
        applications: applications.map(({ application, ownerEmail, secretsEnd }) => ({
          ...shown(application),
          owner: ownerEmail,
          secretsEnd: secretsEnd && moment(secretsEnd),
          endsSoon: endsSoon(secretsEnd, now),
        })),
      };
    });
  }

  /**
   * Shows the form for a new application to an admin.
   * @throws DomainError admin_required
   */
  @Get('new')
  @Route({ summary: 'Shows the form that registers an application' })
  async register(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: NEW }) { type }: z.output<typeof NEW>,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-application-new', () => {
      const kind = isKind(type) ? type : undefined;
      return {
        kinds: Object.entries(KINDS).map(([name, [title, text]]) => ({ name, title, text })),
        kind,
        title: kind === undefined ? '' : KINDS[kind][0],
        endpoints: kind === undefined ? [] : endpointsOf(kind, this.config.http.baseUrl),
        fields:
          kind === 'kubernetes'
            ? clusterFields('', true)
            : isType(kind)
              ? fieldsOf(kind, undefined)
              : [],
      };
    });
  }

  /**
   * Shows an application to an admin.
   * @throws DomainError admin_required, not_found
   */
  @Get(':id')
  @Route({ summary: 'Shows an application of the organization, and what its deletion ends' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-application', async (_, session) => {
      const manager = managerOf(session);
      const { application, ownerEmail, secrets, access, isProven } =
        await this.applications.details(manager, id);
      const now = this.clock.now();
      const isCluster = application.resource !== null;
      const registration = registrationOf(application.metadata);
      const kind = isCluster ? 'kubernetes' : registration.type;
      const end = lastSecretEnd(secrets);
      const isTold = registration.backchannel_logout_uri !== null;
      const notices = await this.notices.list(manager, id);
      return {
        application: shown(application),
        endpoints: endpointsOf(kind, this.config.http.baseUrl),
        tag: entityTag(applicationVersion(application)),
        owner: ownerEmail,
        access,
        isProven,
        approval: isCluster ? undefined : approvalOf(application, registration.redirect_uris),
        usesSecret: !isCluster && usesSecret(registration.auth_method),
        secrets: secrets.map((secret) => shownSecret(secret, now)),
        secretsEnd: end && moment(end),
        endsSoon: endsSoon(end, now),
        notices: isTold ? shownNotices(notices) : undefined,
        signals:
          isCluster || registration.auth_method === 'none'
            ? undefined
            : shownSignals(await this.notices.showSignals(manager, id)),
        fields: isCluster
          ? clusterFields(registration.name, false)
          : fieldsOf(registration.type, registration),
      };
    });
  }
}

/**
 * Returns the admin of a browser session. An admin manages every application of the organization.
 * @throws DomainError admin_required
 */
function managerOf({ id: sessionId, user }: VerifiedSession): ApplicationManager {
  if (!user.isOrgAdmin || user.orgId === null) {
    throw new DomainError('admin_required', 'This is for the admins of an organization.');
  }
  return { userId: user.id, orgId: user.orgId, isAdmin: true, isOrgAdmin: true, sessionId };
}

function isType(kind: string | undefined): kind is ApplicationType {
  return kind !== undefined && Object.hasOwn(TYPES, kind);
}

function isKind(kind: string | undefined): kind is keyof typeof KINDS {
  return kind !== undefined && Object.hasOwn(KINDS, kind);
}

/**
 * Returns the facts of an application that a template shows, such as its name, its kind in words
 * and its times.
 */
function shown(application: ClientApplication) {
  const { name, type } = registrationOf(application.metadata);
  const kind = application.resource === null ? type : 'kubernetes';
  return {
    id: application.id,
    name,
    kind: KINDS[kind][0],
    resource: application.resource,
    isApproved: application.resource !== null || application.approvedAt !== null,
    created: moment(application.createdAt),
    lastUsed: moment(application.lastUsedAt),
  };
}

/**
 * Returns the approval of an application as the page shows it. `open` lists the redirect URIs that
 * the approval does not cover.
 */
function approvalOf(
  { approvedAt, approvedUris }: ClientApplication,
  redirectUris: readonly string[],
) {
  const open = redirectUris.filter((uri) => !approvedUris?.includes(uri));
  return { at: approvedAt && moment(approvedAt), open };
}

/**
 * Returns the logout notices of an application as the page shows them. `deadLetters` are those that
 * the application did not accept.
 */
function shownNotices(notices: NoticesOfClient) {
  return {
    ...notices,
    oldest: notices.oldest && moment(notices.oldest),
    deadLetters: notices.deadLetters.map((letter) => ({
      ...letter,
      created: moment(letter.createdAt),
    })),
  };
}

/**
 * Returns the state of an application's stream of signals (security events about users) as the page
 * shows it.
 */
function shownSignals({ receiver, stream, waiting, oldest, deadLetters }: ApplicationSignalsState) {
  return {
    format: receiver?.subjectFormat,
    stream: stream && {
      isPushed: stream.method === 'push',
      status: stream.status,
      // The query of the URL is not shown, because it may contain a secret of the receiver.
      place: stream.endpointUrl?.replace(/\?.*$/, ''),
    },
    waiting,
    oldest: oldest && moment(oldest),
    deadLetters: deadLetters.map(({ id, type, subject, createdAt, result }) => ({
      id,
      type,
      subject,
      created: moment(createdAt),
      result,
    })),
  };
}

function shownSecret({ id, createdAt, expiresAt }: ClientSecret, now: Date) {
  return {
    id,
    created: moment(createdAt),
    expires: expiresAt && moment(expiresAt),
    endsSoon: endsSoon(expiresAt, now),
  };
}
