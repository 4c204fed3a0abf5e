/**
 * The claim from which STS, the token service of AWS, takes session tags (IAM User Guide, "Passing
 * session tags using AssumeRoleWithWebIdentity").
 */
export const TAGS_CLAIM = 'https://aws.amazon.com/tags';

/** The claim from which STS takes the source identity of a role session. */
export const SOURCE_IDENTITY_CLAIM = 'https://aws.amazon.com/source_identity';

/**
 * The claim that lists the exact ARNs of the roles that STS may give. An AWS role whose trust
 * policy has the condition key `sts:RoleAuthorizedByIdp` refuses a token without this claim.
 */
export const ROLES_CLAIM = 'https://aws.amazon.com/roles';

/**
 * The pattern of the names that STS accepts as a source identity and as the name of a role session.
 */
const STS_NAME = /^[\w+=,.@-]{2,64}$/;

/** The user that a token names, and what the session proves about the user's security key. */
export interface AwsTokenSubject {
  readonly userId: string;
  readonly email: string;
  readonly orgId: string;
  readonly hardwareAaguid: string | null;
  readonly amr: readonly string[];
  readonly acr: string | null;
  readonly authTime: Date;
}

/** The values of a token that are not about its user. */
export interface AwsTokenValues {
  readonly issuer: string;
  readonly audience: string;
  readonly tokenId: string;
  readonly roleArn: string | null;
  /** True for a token that asks for a role session that can only read. */
  readonly isReadOnly: boolean;
  /** The time of the issuance, in seconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/**
 * Returns the source identity of a user: the e-mail address if STS accepts it as a name, and
 * otherwise the user id.
 */
export function sourceIdentityOf({ userId, email }: Pick<AwsTokenSubject, 'userId' | 'email'>) {
  return STS_NAME.test(email) ? email : userId;
}

/**
 * Returns the claims of a token for AWS. If STS does not accept the e-mail address of the user as a
 * name, the session tags do not contain it. A token for a role session that can only read has the
 * session tag `read_only`. A policy of the AWS role can check this tag and deny every act that
 * changes something.
 */
export function awsTokenClaims(subject: AwsTokenSubject, values: AwsTokenValues) {
  const { email, userId, orgId, hardwareAaguid, amr, acr, authTime } = subject;
  const sourceIdentity = sourceIdentityOf(subject);
  const tags = {
    ...(sourceIdentity === email ? { email: [email] } : {}),
    user_id: [userId],
    org_id: [orgId],
    ...(hardwareAaguid === null ? {} : { hardware_aaguid: [hardwareAaguid] }),
    ...(values.isReadOnly ? { read_only: ['true'] } : {}),
  };
  return {
    iss: values.issuer,
    sub: email,
    aud: values.audience,
    iat: values.issuedAt,
    exp: values.expiresAt,
    jti: values.tokenId,
    auth_time: Math.floor(authTime.getTime() / 1000),
    amr,
    ...(acr === null ? {} : { acr }),
    hardware_verified: true,
    ...(hardwareAaguid === null ? {} : { hardware_aaguid: hardwareAaguid }),
    ...(values.roleArn === null
      ? {}
      : { role_arn: values.roleArn, [ROLES_CLAIM]: [values.roleArn] }),
    [SOURCE_IDENTITY_CLAIM]: sourceIdentity,
    [TAGS_CLAIM]: { principal_tags: tags, transitive_tag_keys: Object.keys(tags) },
  };
}
