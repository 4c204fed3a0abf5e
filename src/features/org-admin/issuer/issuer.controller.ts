import { Body, Controller, Delete, Get, HttpCode, Inject, Patch, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import type { OrganizationIssuer } from '#domain/organizations/issuers/organization-issuers.repository.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Route } from '#platform/http/routing/route.js';
import { IssuerAdmin } from '#domain/admin/organization/issuer-admin.service.js';
import {
  CHANGE_ISSUER,
  CLAIM_LABEL,
  ISSUER_RESPONSE,
  issuerJson,
  ROTATE_KEY,
  type ChangeIssuer,
  type ClaimLabel,
  type IssuerResponse,
  type RotateKey,
} from './issuer.schemas.js';

/**
 * `/api/v1/org/issuer`: manages the issuer of the organization. The issuer has a host and keys of
 * its own, and signs the tokens of the organization for AWS.
 */
@Controller('api/v1/org/issuer')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class IssuerController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly issuerAdmin: IssuerAdmin,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'getIssuer',
    summary: 'Shows the issuer of the organization and its keys',
    answers: { 200: ISSUER_RESPONSE },
    refusals: ['admin_required'],
  })
  async show(@Caller() session: VerifiedSession): Promise<IssuerResponse> {
    return this.#response(await this.issuerAdmin.show(adminOf(session)));
  }

  @Post()
  @Route({
    operation: 'claimIssuer',
    summary: 'Claims a label for the issuer of the organization',
    answers: { 201: ISSUER_RESPONSE },
    refusals: [
      'admin_required',
      'label_reserved',
      'label_taken',
      'issuer_exists',
      'limit_reached',
      'issuers_not_configured',
      'kms_unavailable',
    ],
  })
  @HttpCode(201)
  async claim(
    @Caller() session: VerifiedSession,
    @Body({ schema: CLAIM_LABEL }) claim: ClaimLabel,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<IssuerResponse> {
    return this.#response(await this.issuerAdmin.claim(adminOf(session), claim, origin));
  }

  @Patch()
  @Route({
    operation: 'changeIssuer',
    summary: 'Decides if the AWS tokens of the organization come from its issuer',
    answers: { 200: ISSUER_RESPONSE },
    refusals: ['admin_required', 'not_found', 'issuers_not_configured', 'kms_unavailable'],
  })
  async change(
    @Caller() session: VerifiedSession,
    @Body({ schema: CHANGE_ISSUER }) { active }: ChangeIssuer,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<IssuerResponse> {
    return this.#response(await this.issuerAdmin.setActive(adminOf(session), active, origin));
  }

  @Delete()
  @Route({
    operation: 'releaseIssuer',
    summary: 'Releases the label, which stays reserved for the organization',
    answers: { 204: null },
    refusals: ['admin_required', 'not_found'],
  })
  @HttpCode(204)
  async release(
    @Caller() session: VerifiedSession,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<void> {
    await this.issuerAdmin.release(adminOf(session), origin);
  }

  @Post('rotate')
  @Route({
    operation: 'rotateIssuerKey',
    summary: 'Replaces the signing key of the issuer, with overlap or in an emergency at once',
    answers: { 200: ISSUER_RESPONSE },
    refusals: [
      'admin_required',
      'not_found',
      'rotation_pending',
      'issuers_not_configured',
      'kms_unavailable',
    ],
  })
  @HttpCode(200)
  async rotate(
    @Caller() session: VerifiedSession,
    @Body({ schema: ROTATE_KEY }) { emergency }: RotateKey,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<IssuerResponse> {
    return this.#response(await this.issuerAdmin.rotate(adminOf(session), emergency, origin));
  }

  #response(issuer: OrganizationIssuer | undefined): IssuerResponse {
    return { issuer: issuer ? issuerJson(issuer, this.#baseUrl) : null };
  }
}
