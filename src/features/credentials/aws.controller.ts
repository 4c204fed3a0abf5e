import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AwsTokens } from '#domain/aws/aws-tokens.service.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import { deniedSession } from '#domain/sessions/access-token.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import {
  AWS_BODY,
  AWS_QUERY,
  AWS_TOKEN_JSON,
  awsTokenJson,
  type AwsRequest,
  type AwsTokenJson,
} from './aws.schemas.js';

const REFUSALS: ErrorCode[] = [
  'issuance_refused',
  'account_inactive',
  'kms_unavailable',
  'not_assigned',
  'browser_required',
  'insufficient_user_authentication',
];

/**
 * `/v1/credentials/aws/token`: issues a token that AWS STS exchanges for the temporary credentials
 * of a role.
 */
@Controller('v1/credentials/aws/token')
@Route({
  tier: 'issuance',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS,
})
export class AwsController {
  constructor(
    private readonly awsTokens: AwsTokens,
    private readonly metrics: ServiceMetrics,
  ) {}

  @Post()
  @Route({
    operation: 'issueAwsToken',
    summary: 'Issues a token for AWS STS',
    answers: { 200: AWS_TOKEN_JSON },
    refusals: REFUSALS,
  })
  @HttpCode(200)
  post(
    @Caller() session: VerifiedSession,
    @Body({ schema: AWS_BODY }) body: AwsRequest | undefined,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<AwsTokenJson> {
    return this.#issue(session, body, origin);
  }

  /**
   * Issues a token to a caller with an access token in the Authorization header. A cookie does not
   * authenticate this GET, because a browser sends its cookies with a GET that any page caused.
   */
  @Get()
  @Route({
    operation: 'getAwsToken',
    summary: 'Issues a token for AWS STS, to a token in the header alone',
    answers: { 200: AWS_TOKEN_JSON },
    refusals: REFUSALS,
    head: false,
    auth: { ...USER_ACCESS, headerOnly: true },
  })
  get(
    @Caller() session: VerifiedSession,
    @Query({ schema: AWS_QUERY }) query: AwsRequest,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<AwsTokenJson> {
    return this.#issue(session, query, origin);
  }

  async #issue(
    session: VerifiedSession,
    asked: AwsRequest | undefined,
    origin: AuditOrigin,
  ): Promise<AwsTokenJson> {
    const { id: userId, email } = session.user;
    if (email === null) {
      throw new DomainError('issuance_refused', 'This account has no e-mail address.');
    }
    const { id: sessionId, hardwareAaguid, amr, acr, authTime } = session;
    const proven = {
      sessionId,
      userId,
      email,
      hardwareAaguid,
      amr,
      acr,
      authTime,
      denied: deniedSession(session),
    };
    const role = { arn: asked?.role_arn ?? null, isReadOnly: asked?.read_only === true };
    const issued = await this.awsTokens.issue(proven, role, origin);
    this.metrics.countIssued('aws');
    return awsTokenJson(issued);
  }
}
