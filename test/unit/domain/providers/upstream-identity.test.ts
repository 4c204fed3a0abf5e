import { describe, expect, it } from 'vitest';
import { identityFromClaims } from '#domain/providers/upstream-identity.js';
import { DomainError } from '#platform/errors/domain-error.js';

const OKTA = { slug: 'okta', issuer: 'https://corp.okta.test' };
const ENTRA = { slug: 'entra', issuer: 'https://login.microsoftonline.com/organizations/v2.0' };
const GOOGLE = { slug: 'google', issuer: 'https://accounts.google.com' };
const ADA = { sub: 'u-1', email: ' Ada@Engine.test', email_verified: true, name: ' Ada Lovelace ' };

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const OF_TENANT = {
  iss: `https://login.microsoftonline.com/${TENANT}/v2.0`,
  tid: TENANT,
  sub: 'pairwise',
  email: 'ada@engine.test',
};

function refusal(provider: typeof OKTA, claims: object): DomainError {
  try {
    identityFromClaims(provider, { ...claims });
  } catch (error) {
    if (error instanceof DomainError) return error;
  }
  throw new Error('it was not refused');
}

describe('an identity from any OpenID provider', () => {
  it('is normalized to one spelling', () => {
    expect(identityFromClaims(OKTA, { ...ADA, iss: OKTA.issuer })).toEqual({
      provider: 'okta',
      issuer: 'https://corp.okta.test',
      subject: 'u-1',
      tenant: '',
      email: 'ada@engine.test',
      name: 'Ada Lovelace',
      organizationDomain: 'engine.test',
    });
  });

  it.each([undefined, false, 'false', 'True', '1', 1, 'yes'])(
    'is refused unless email_verified is true: %j',
    (value) => {
      expect(refusal(OKTA, { ...ADA, email_verified: value }).code).toBe('sign_in_refused');
    },
  );

  it('is refused without a subject, without an e-mail and with a malformed one', () => {
    expect(refusal(OKTA, { ...ADA, sub: '' }).detail).toContain('`sub`');
    expect(refusal(OKTA, { ...ADA, email: undefined }).detail).toContain('`email`');
    expect(refusal(OKTA, { ...ADA, email: 'ada@engine.test\nroot' }).detail).toContain('malformed');
  });

  it('ignores Microsoft and Google claims from another provider', () => {
    const claims = { ...ADA, email_verified: false, xms_edov: true };
    expect(refusal(OKTA, claims).code).toBe('sign_in_refused');
    const { organizationDomain, tenant } = identityFromClaims(OKTA, {
      ...ADA,
      hd: 'victim.test',
      tid: 'x',
    });
    expect({ organizationDomain, tenant }).toEqual({
      organizationDomain: 'engine.test',
      tenant: '',
    });
  });

  it('with an address of a public mail domain belongs to no organization', () => {
    const identity = identityFromClaims(OKTA, { ...ADA, email: 'ada@gmail.com' });
    expect(identity.organizationDomain).toBeNull();
  });

  it('may have no name', () => {
    expect(identityFromClaims(OKTA, { ...ADA, name: '  ' }).name).toBeNull();
    expect(identityFromClaims(OKTA, { ...ADA, name: { first: 'Ada' } }).name).toBeNull();
  });
});

describe('an identity from Microsoft', () => {
  it.each([true, 1, '1', 'true'])('is verified when xms_edov is %j', (xms_edov) => {
    expect(identityFromClaims(ENTRA, { ...OF_TENANT, xms_edov })).toMatchObject({
      issuer: OF_TENANT.iss,
      tenant: TENANT,
      email: 'ada@engine.test',
      organizationDomain: 'engine.test',
    });
  });

  it.each([undefined, false, 0, '0', 'false', 'True ', 2])(
    'is refused with xms_edov %j, naming the optional claim to add',
    (xms_edov) => {
      const error = refusal(ENTRA, { ...OF_TENANT, xms_edov });
      expect(error.code).toBe('sign_in_refused');
      expect(error.detail).toContain('`xms_edov`');
    },
  );

  it('is refused where a tenant maps its own email_verified into the token', () => {
    expect(refusal(ENTRA, { ...OF_TENANT, email_verified: true }).detail).toContain('`xms_edov`');
  });

  it('needs xms_edov in a single tenant and in a sovereign cloud too', () => {
    for (const host of ['login.microsoftonline.com', 'login.microsoftonline.us']) {
      const provider = { slug: 'entra', issuer: `https://${host}/${TENANT}/v2.0` };
      expect(refusal(provider, OF_TENANT).detail).toContain('`xms_edov`');
    }
  });
});

describe('an identity from Google', () => {
  const claims = { ...ADA, iss: GOOGLE.issuer };

  it('belongs to the organization that `hd` names', () => {
    expect(identityFromClaims(GOOGLE, { ...claims, hd: 'Engine.test' })).toMatchObject({
      tenant: 'engine.test',
      organizationDomain: 'engine.test',
    });
  });

  it('without `hd` belongs to no organization, even when its e-mail is verified', () => {
    expect(identityFromClaims(GOOGLE, claims)).toMatchObject({
      tenant: '',
      email: 'ada@engine.test',
      organizationDomain: null,
    });
  });

  it('cannot claim a public mail domain by `hd`', () => {
    expect(
      identityFromClaims(GOOGLE, { ...claims, hd: 'gmail.com' }).organizationDomain,
    ).toBeNull();
  });
});
