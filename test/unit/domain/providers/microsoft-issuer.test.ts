import { describe, expect, it } from 'vitest';
import {
  isCommonIssuer,
  isMicrosoftIssuer,
  issuedByOwnTenant,
  normalizeTemplate,
  tenantTemplate,
} from '#domain/providers/openid/microsoft-issuer.js';

const HOST = 'https://login.microsoftonline.com';

describe('a Microsoft issuer', () => {
  it.each([
    [`${HOST}/organizations/v2.0`, true],
    [`${HOST}/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0`, true],
    ['https://login.microsoftonline.us/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0', true],
    ['https://login.partner.microsoftonline.cn/organizations/v2.0', true],
    ['https://login.microsoftonline.com.evil.test/x/v2.0', false],
    ['https://accounts.google.com', false],
  ])('is recognized by its host or by a template for all tenants: %s', (issuer, expected) => {
    expect(isMicrosoftIssuer(issuer)).toBe(expected);
  });

  it('is the common issuer with or without a trailing slash, but not by a part of the tenant name', () => {
    expect(isCommonIssuer(`${HOST}/common/v2.0`)).toBe(true);
    expect(isCommonIssuer(`${HOST}/common/v2.0/`)).toBe(true);
    expect(isCommonIssuer(`${HOST}/uncommon/v2.0`)).toBe(false);
  });

  it('has a template only for "organizations" without a trailing slash', () => {
    expect(tenantTemplate(`${HOST}/organizations/v2.0`)).toBe(`${HOST}/{tenantid}/v2.0`);
    expect(tenantTemplate(`${HOST}/organizations/v2.0/`)).toBeUndefined();
    expect(tenantTemplate(`${HOST}/consumers/v2.0`)).toBeUndefined();
  });

  it.each(['{tenantid}', '%7Btenantid%7D', '{tenantId}', '%7btenantid%7d'])(
    'has its template spelled %s',
    (placeholder) => {
      expect(normalizeTemplate(`${HOST}/${placeholder}/v2.0`)).toBe(`${HOST}/{tenantid}/v2.0`);
    },
  );

  it('accepts a token only from the tenant that the token names', () => {
    const template = `${HOST}/{tenantid}/v2.0`;
    expect(issuedByOwnTenant(template, `${HOST}/mine/v2.0`, 'mine')).toBe(true);
    expect(issuedByOwnTenant(template, `${HOST}/theirs/v2.0`, 'mine')).toBe(false);
    expect(issuedByOwnTenant(template, template, '{tenantid}')).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}/undefined/v2.0`, undefined)).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}//v2.0`, '')).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}/$&/v2.0`, '$&')).toBe(false);
  });
});
