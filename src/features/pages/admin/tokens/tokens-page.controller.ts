import { Controller, Get, Inject, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  OrganizationAdmin,
  type ListedToken,
} from '#domain/admin/organization/organization-admin.service.js';
import type { ListedSecret } from '#domain/admin/database-failover/reconciliation/listed-secrets.repository.js';
import type { ListedRefusal } from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import type { ScimToken } from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { rotationStep } from '#domain/directory/scim-tokens/token-rotation.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';

/**
 * Serves `/admin/scim-tokens`, where admins create, replace and revoke the SCIM tokens of their
 * identity provider.
 */
@Controller('admin/scim-tokens')
@Route(PAGE_ROUTE)
export class TokensPageController {
  readonly #scimUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly organizationAdmin: OrganizationAdmin,
    private readonly views: Views,
  ) {
    this.#scimUrl = `${config.http.baseUrl}/scim/v2`;
  }

  /**
   * Lists the SCIM tokens for an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the SCIM tokens of the organization' })
  async list(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'scim-tokens', async (admin) => {
      const [tokens, refusals, isFirst, { membership }, secrets] = await Promise.all([
        this.organizationAdmin.listTokens(admin),
        this.organizationAdmin.listRefusals(admin),
        this.organizationAdmin.isFirstToken(admin),
        this.organizationAdmin.show(admin),
        this.organizationAdmin.listSecretsToConfirm(admin),
      ]);
      return {
        scimUrl: this.#scimUrl,
        switchesMembership: isFirst && membership === 'open',
        expiring: tokens.filter(({ expiresSoon }) => expiresSoon).length,
        tokens: tokens.map((token) => listedToken(token, tokens)),
        refusals: refusals.map((refusal) => shownRefusal(refusal, tokens)),
        secrets: secrets.map(shownSecret),
      };
    });
  }

  /**
   * Shows an admin the steps that replace a SCIM token.
   * @throws DomainError admin_required, not_found
   */
  @Get(':id/rotate')
  @Route({ summary: 'Shows the rotation of a SCIM token' })
  async rotate(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'scim-token-rotation', async (admin) => {
      const rotation = await this.organizationAdmin.findRotation(admin, id);
      return {
        scimUrl: this.#scimUrl,
        step: rotationStep(rotation),
        old: shownToken(rotation.old),
        oldEnded: rotation.oldEndedAt && moment(rotation.oldEndedAt),
        replacement: rotation.replacement && shownToken(rotation.replacement),
      };
    });
  }
}

const KINDS_OF_SECRETS = {
  scim_token: 'SCIM token',
  api_token: 'API token',
  client_secret: 'Secret of an application',
} as const satisfies Record<ListedSecret['secret'], string>;

/** Returns a secret that an admin has to confirm, as the template shows it. */
function shownSecret({
  id,
  secret,
  clientId,
  name,
  act,
  isLost,
  isValid,
  happenedAt,
}: ListedSecret) {
  return {
    id,
    what: KINDS_OF_SECRETS[secret],
    name,
    applicationId: clientId,
    act: act === 'made' ? 'Made' : 'Ended',
    outcome: outcomeOf(act, isLost),
    isValid,
    happened: moment(happenedAt),
  };
}

/**
 * Returns in words whether the database has kept the creation or the end of a secret. After a
 * failover, the database may have lost it.
 */
function outcomeOf(act: ListedSecret['act'], isLost: boolean): string {
  if (!isLost) return 'The database has kept this.';
  return act === 'made'
    ? 'The database lost this: the secret does not exist. Make a new one.'
    : 'The database lost this: the secret was ended again.';
}

/** Returns the facts of a SCIM token that a template shows, with its times as texts. */
function shownToken(token: ScimToken) {
  return {
    id: token.id,
    description: token.description,
    createdBy: token.createdByEmail,
    created: moment(token.createdAt),
    lastUsed: token.lastUsedAt && moment(token.lastUsedAt),
    expires: moment(token.expiresAt),
  };
}

/**
 * Returns a refused SCIM write as the template shows it, with the description of its SCIM token.
 */
function shownRefusal(refusal: ListedRefusal, tokens: readonly ListedToken[]) {
  const { tokenId, resourceType, resourceId, method, reason, detail, count, lastAt } = refusal;
  return {
    token: tokens.find(({ id }) => id === tokenId)?.description ?? 'a token',
    what: `${method} ${resourceType}`.trim(),
    memberId: resourceType === 'User' && resourceId !== '' ? resourceId : null,
    resourceId,
    isApplied: reason === 'left_out',
    detail,
    count,
    last: moment(lastAt),
  };
}

/**
 * Returns a SCIM token as a row of the list shows it. `isReplaced` is true if another token is
 * replacing it, and `replaces` names the token that it replaces.
 */
function listedToken(token: ListedToken, tokens: readonly ListedToken[]) {
  return {
    ...shownToken(token),
    expiresSoon: token.expiresSoon,
    isReplaced: tokens.some(({ replaces }) => replaces === token.id),
    replaces: tokens.find(({ id }) => id === token.replaces)?.description ?? null,
  };
}
