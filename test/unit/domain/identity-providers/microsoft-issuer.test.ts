import { describe, expect, it } from 'vitest';
import {
  isCommonIssuer,
  isMicrosoftIssuer,
  issuedByOwnTenant,
  normalizeTemplate,
  tenantTemplate,
} from '#domain/identity-providers/microsoft-issuer.js';

const HOST = 'https://login.microsoftonline.com';

describe('a Microsoft issuer', () => {
  it.each([
    [`${HOST}/organizations/v2.0`, true],
    [`${HOST}/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0`, true],
    ['https://login.microsoftonline.us/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0', true],
    ['https://login.partner.microsoftonline.cn/organizations/v2.0', true],
    ['https://login.microsoftonline.com.evil.test/x/v2.0', false],
    ['https://accounts.google.com', false],
  ])('is told by its host or by serving all tenants: %s', (issuer, expected) => {
    expect(isMicrosoftIssuer(issuer)).toBe(expected);
  });

  it('is the common one with and without a trailing slash, and no tenant named so in part', () => {
    expect(isCommonIssuer(`${HOST}/common/v2.0`)).toBe(true);
    expect(isCommonIssuer(`${HOST}/common/v2.0/`)).toBe(true);
    expect(isCommonIssuer(`${HOST}/uncommon/v2.0`)).toBe(false);
  });

  it('has a template under "organizations" alone, a trailing slash apart', () => {
    expect(tenantTemplate(`${HOST}/organizations/v2.0`)).toBe(`${HOST}/{tenantid}/v2.0`);
    expect(tenantTemplate(`${HOST}/organizations/v2.0/`)).toBeUndefined();
    expect(tenantTemplate(`${HOST}/consumers/v2.0`)).toBeUndefined();
  });

  it.each(['{tenantid}', '%7Btenantid%7D', '{tenantId}', '%7btenantid%7d'])(
    'spells its placeholder %s',
    (placeholder) => {
      expect(normalizeTemplate(`${HOST}/${placeholder}/v2.0`)).toBe(`${HOST}/{tenantid}/v2.0`);
    },
  );

  it('speaks for no tenant but its own', () => {
    const template = `${HOST}/{tenantid}/v2.0`;
    expect(issuedByOwnTenant(template, `${HOST}/mine/v2.0`, 'mine')).toBe(true);
    expect(issuedByOwnTenant(template, `${HOST}/theirs/v2.0`, 'mine')).toBe(false);
    expect(issuedByOwnTenant(template, template, '{tenantid}')).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}/undefined/v2.0`, undefined)).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}//v2.0`, '')).toBe(false);
    expect(issuedByOwnTenant(template, `${HOST}/$&/v2.0`, '$&')).toBe(false);
  });
});
