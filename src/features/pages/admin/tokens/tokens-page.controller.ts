import { Controller, Get, Inject, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  OrganizationAdmin,
  type ListedToken,
} from '#domain/organization-admin/organization-admin.service.js';
import type { ScimToken } from '#domain/scim-tokens/scim-tokens.repository.js';
import { rotationStep } from '#domain/scim-tokens/token-rotation.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { person } from '../../shell/person.js';

/** Serves `/admin/scim-tokens`, where admins make, rotate and end the tokens of their identity provider. */
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

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Shows the SCIM tokens of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const { admin, session } = admitted;
    const [tokens, isFirst, { membership }] = await Promise.all([
      this.organizationAdmin.listTokens(admin),
      this.organizationAdmin.isFirstToken(admin),
      this.organizationAdmin.show(admin),
    ]);
    const page = {
      person: person(session),
      scimUrl: this.#scimUrl,
      switchesMembership: isFirst && membership === 'open',
      expiring: tokens.filter(({ expiresSoon }) => expiresSoon).length,
      tokens: tokens.map((token) => listedToken(token, tokens)),
    };
    response.type('html').send(this.views.render('scim-tokens', page));
  }

  /** @throws DomainError admin_required, not_found */
  @Get(':id/rotate')
  @Route({ summary: 'Shows the rotation of a SCIM token' })
  async rotate(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const rotation = await this.organizationAdmin.findRotation(admitted.admin, id);
    const page = {
      person: person(admitted.session),
      scimUrl: this.#scimUrl,
      step: rotationStep(rotation),
      old: shownToken(rotation.old),
      oldEnded: rotation.oldEndedAt && moment(rotation.oldEndedAt),
      replacement: rotation.replacement && shownToken(rotation.replacement),
    };
    response.type('html').send(this.views.render('scim-token-rotation', page));
  }
}

/** A token for a template. */
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

/** A token of the list, with its place in a rotation that goes on. */
function listedToken(token: ListedToken, tokens: readonly ListedToken[]) {
  return {
    ...shownToken(token),
    expiresSoon: token.expiresSoon,
    isReplaced: tokens.some(({ replaces }) => replaces === token.id),
    replaces: tokens.find(({ id }) => id === token.replaces)?.description ?? null,
  };
}
