import { describe, expect, it } from 'vitest';
import {
  awsTokenClaims,
  ROLES_CLAIM,
  SOURCE_IDENTITY_CLAIM,
  TAGS_CLAIM,
  type AwsTokenSubject,
} from '#domain/aws/token-claims.js';

const ADA: AwsTokenSubject = {
  userId: '0199d0c6-7c1e-7000-8000-000000000001',
  email: 'ada@example.com',
  orgId: '0199d0c6-7c1e-7000-8000-000000000002',
  hardwareAaguid: 'fa2b99dc-9e39-4257-8f92-4a30d23c4118',
  amr: ['hwk', 'pin', 'user'],
  acr: 'urn:nist:authentication:assurance-level:aal3',
  authTime: new Date('2026-11-22T08:00:00.900Z'),
};
const VALUES = {
  issuer: 'https://svc.example.com',
  audience: 'sts.amazonaws.com',
  tokenId: '0199d0c6-7c1e-7000-8000-000000000003',
  roleArn: 'arn:aws:iam::123456789012:role/engineer',
  isReadOnly: false,
  issuedAt: 1_795_000_000,
  expiresAt: 1_795_000_300,
};
const claimsOf = (changes: Partial<AwsTokenSubject> = {}) =>
  awsTokenClaims({ ...ADA, ...changes }, VALUES);

describe('the claims of a token for AWS', () => {
  it('name the user, the proof, the role, the source identity and the session tags', () => {
    const tags = {
      email: ['ada@example.com'],
      user_id: [ADA.userId],
      org_id: [ADA.orgId],
      hardware_aaguid: [ADA.hardwareAaguid],
    };
    expect(claimsOf()).toEqual({
      iss: 'https://svc.example.com',
      sub: 'ada@example.com',
      aud: 'sts.amazonaws.com',
      iat: 1_795_000_000,
      exp: 1_795_000_300,
      jti: VALUES.tokenId,
      auth_time: 1_795_334_400,
      amr: ['hwk', 'pin', 'user'],
      acr: ADA.acr,
      hardware_verified: true,
      hardware_aaguid: ADA.hardwareAaguid,
      role_arn: VALUES.roleArn,
      [ROLES_CLAIM]: [VALUES.roleArn],
      [SOURCE_IDENTITY_CLAIM]: 'ada@example.com',
      [TAGS_CLAIM]: { principal_tags: tags, transitive_tag_keys: Object.keys(tags) },
    });
  });

  it('have the transitive session tag read_only for a role session that can only read', () => {
    const { principal_tags, transitive_tag_keys } = awsTokenClaims(ADA, {
      ...VALUES,
      isReadOnly: true,
    })[TAGS_CLAIM];
    expect(principal_tags).toMatchObject({ read_only: ['true'] });
    expect(transitive_tag_keys).toContain('read_only');
    expect(claimsOf()[TAGS_CLAIM].principal_tags).not.toHaveProperty('read_only');
  });

  it.each([
    ['an apostrophe', "o'brien@example.com"],
    ['65 characters', `${'a'.repeat(53)}@example.com`],
    ['a letter outside ASCII', 'zoë@example.com'],
    ['a line feed at its end', 'ada@example.com\n'],
  ])('have the user id as source identity, and no e-mail tag, for %s', (_, email) => {
    const claims = claimsOf({ email });
    expect(claims.sub).toBe(email);
    expect(claims[SOURCE_IDENTITY_CLAIM]).toBe(ADA.userId);
    const { principal_tags, transitive_tag_keys } = claims[TAGS_CLAIM];
    expect(principal_tags).not.toHaveProperty('email');
    expect(transitive_tag_keys).toEqual(['user_id', 'org_id', 'hardware_aaguid']);
  });

  it('have the e-mail as source identity up to 64 characters', () => {
    const email = `${'a'.repeat(52)}@example.com`;
    expect(claimsOf({ email })[SOURCE_IDENTITY_CLAIM]).toBe(email);
  });

  it('leave out what the security key did not prove', () => {
    const claims = claimsOf({ hardwareAaguid: null, acr: null, amr: ['hwk', 'user'] });
    expect(claims).not.toHaveProperty('acr');
    expect(claims).not.toHaveProperty('hardware_aaguid');
    expect(claims.amr).toEqual(['hwk', 'user']);
    expect(claims[TAGS_CLAIM].principal_tags).not.toHaveProperty('hardware_aaguid');
  });
});
