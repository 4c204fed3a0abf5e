import { describe, expect, it } from 'vitest';
import {
  GOOGLE_ISSUER,
  issuerTenant,
  NO_TENANTS,
  servesTenant,
  tenancyOf,
} from '#domain/providers/tenancy.js';
import { DomainError } from '#platform/errors/domain-error.js';

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47';
const ENTRA = 'https://login.microsoftonline.com';
const provider = (issuer: string) => ({ issuer, tenancy: tenancyOf(issuer) });
const google = provider(GOOGLE_ISSUER);
const organizations = provider(`${ENTRA}/organizations/v2.0`);
const oneTenant = provider(`${ENTRA}/${TENANT}/v2.0`);
const okta = provider('https://acme.okta.com');

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof DomainError) return `${error.code} ${error.detail}`;
  }
  throw new Error('it was not refused');
}

describe('the issuer and tenant that an organization accepts', () => {
  it('are those in the ID tokens of each kind of provider', () => {
    expect(issuerTenant(okta, undefined)).toEqual({ issuer: okta.issuer, tenant: '' });
    expect(issuerTenant(oneTenant, undefined)).toEqual({
      issuer: oneTenant.issuer,
      tenant: TENANT,
    });
    expect(issuerTenant(organizations, TENANT.toUpperCase())).toEqual({
      issuer: oneTenant.issuer,
      tenant: TENANT,
    });
    expect(issuerTenant(google, 'Acme.COM')).toEqual({ issuer: GOOGLE_ISSUER, tenant: 'acme.com' });
  });

  it.each([
    ['no tenant', organizations, undefined],
    ['an empty tenant', organizations, ''],
    ['a domain where a UUID belongs', organizations, 'acme.onmicrosoft.com'],
    ['more than a UUID', organizations, `${TENANT}/x`],
    ['the tenant of personal accounts', organizations, '9188040d-6c67-4c5b-b112-36a304b66dad'],
    ['no hosted domain', google, undefined],
    ['a UUID where a domain belongs', google, TENANT],
    ['an address', google, 'ada@acme.com'],
    ['a host without a dot', google, 'localhost'],
    ['a tenant of a provider without tenants', okta, 'acme'],
    ['a tenant of the issuer of one tenant', oneTenant, TENANT],
  ])('are refused for %s', (_what, of, tenant) => {
    expect(refusal(() => issuerTenant(of, tenant))).toMatch(/^invalid_request tenant: /);
  });

  it('are found again at the provider that serves them, and at no other', () => {
    const accepted = { issuer: `${ENTRA}/${TENANT}/v2.0`, tenant: TENANT };
    expect(servesTenant(organizations, accepted)).toBe(true);
    expect(servesTenant(oneTenant, accepted)).toBe(true);
    expect(servesTenant(okta, accepted)).toBe(false);
    const other = { issuer: 'https://evil.example/v2.0', tenant: TENANT };
    expect(servesTenant(organizations, other)).toBe(false);
    expect(servesTenant(google, { issuer: GOOGLE_ISSUER, tenant: 'acme.com' })).toBe(true);
  });

  it('of a SAML provider have no tenant, also where its entity id has a host of Microsoft', () => {
    const saml = { issuer: `https://sts.windows.net/${TENANT}/`, tenancy: NO_TENANTS };
    expect(issuerTenant(saml, undefined)).toEqual({ issuer: saml.issuer, tenant: '' });
  });
});
