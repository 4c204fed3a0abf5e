import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { Issuance } from '#domain/access/issuance/issuance.repository.js';
import { recordRefusedAccess } from '#domain/access/issuance/refused-access.repository.js';
import { refusedIssuance, type DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import { issuerOfLabel } from '#domain/organizations/issuers/issuer-label.js';
import { IssuerKeys } from '#domain/organizations/issuers/issuer-keys.service.js';
import { TokenSigningKeys } from '#domain/oauth/token-signing/token-signing-keys.service.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { AWS_TOKEN, hasOrganization } from './aws-tokens.repository.js';
import { awsTokenClaims, sourceIdentityOf, type AwsTokenSubject } from './token-claims.js';

/** The lifetime of a token in seconds. It is short because a client exchanges the token at once. */
const LIFETIME = 300;

/**
 * The session for which a token is requested, with its user. The user has logged in to this session
 * with a security key.
 */
export interface AwsTokenSession extends Omit<AwsTokenSubject, 'orgId'> {
  readonly sessionId: string;
  readonly denied: DeniedSession;
}

/** The role for which a client requests a token, and what the role session may do. */
export interface AskedRole {
  /** Null for a token that names no role. */
  readonly arn: string | null;
  /** True for a role session that can only read. The token then has the session tag `read_only`. */
  readonly isReadOnly: boolean;
}

/** A signed token, as the client gets it. */
export interface IssuedAwsToken {
  readonly token: string;
  /** Seconds from the issuance until the token expires. */
  readonly expiresIn: number;
}

/**
 * The errors for the two reasons of the denial `withheld`. The user has no organization, and only
 * members of one get tokens for AWS; or the own issuer of the organization has no signing key.
 */
const NO_MEMBER = ['issuance_refused', 'AWS tokens are for members of an organization.'] as const;
const NO_SIGNING_KEY = [
  'issuance_refused',
  'The issuer of your organization has no signing key. Ask an admin of it to rotate the key.',
] as const;

/**
 * Issues tokens that AWS exchanges for credentials. One statement records the token, and then the
 * key of its issuer signs it. Requests at the same time share the statement.
 */
@Injectable()
export class AwsTokens {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'aws' | 'http'>,
    private readonly manager: EntityManager,
    private readonly issuance: Issuance,
    private readonly tokenSigningKeys: TokenSigningKeys,
    private readonly issuerKeys: IssuerKeys,
  ) {}

  /**
   * Issues a token that expires after 300 seconds, or earlier with the session. The statement that
   * records the token also chooses its issuer and the key that signs it. So the token agrees with
   * its record even if the issuer changes before the signature.
   *
   * @throws DomainError `issuers_not_configured`, `kms_unavailable`, and the errors of {@link
   *   refusedIssuance}, such as `account_inactive` or `not_assigned`
   */
  async issue(
    session: AwsTokenSession,
    { arn: roleArn, isReadOnly }: AskedRole,
    origin: AuditOrigin,
  ): Promise<IssuedAwsToken> {
    const tokenId = newUuid();
    const outcome = await this.issuance.issue(AWS_TOKEN, {
      sessionId: session.sessionId,
      userId: session.userId,
      email: session.email,
      tokenId,
      roleArn,
      isReadOnly,
      sourceIdentity: sourceIdentityOf(session),
      lifetime: LIFETIME,
      auditId: newUuid(),
      origin,
    });
    if ('denial' in outcome) {
      const target = { kind: 'aws_role', name: roleArn } as const;
      await recordRefusedAccess(this.manager, session, target, outcome, origin);
      // The look-up only chooses the error text for the denial `withheld`.
      const lacksKey =
        outcome.denial === 'withheld' && (await hasOrganization(this.manager, session.userId));
      throw refusedIssuance(outcome, lacksKey ? NO_SIGNING_KEY : NO_MEMBER, session.denied);
    }
    const { orgId, issuedAt, expiresAt, tokenIssuer } = outcome.issued;
    const { baseUrl } = this.config.http;
    const claims = awsTokenClaims(
      { ...session, orgId },
      {
        issuer: tokenIssuer === null ? baseUrl : issuerOfLabel(baseUrl, tokenIssuer.label),
        audience: this.config.aws.audience,
        tokenId,
        roleArn,
        isReadOnly,
        issuedAt,
        expiresAt,
      },
    );
    const token = await (tokenIssuer === null
      ? this.tokenSigningKeys.signRs256(claims)
      : this.issuerKeys.sign(orgId, tokenIssuer, claims));
    return { token, expiresIn: expiresAt - issuedAt };
  }
}
