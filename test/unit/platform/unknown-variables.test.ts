import { describe, expect, it } from 'vitest';
import { unknownNames } from '../../../src/platform/config/unknown-variables.js';
import { editDistance } from '../../../src/platform/text/edit-distance.js';

const SVC_IDPS = 'demo,corp,corp-saml';
const found = (name: string, value = 'x') => {
  const { problems, warnings } = unknownNames({ SVC_IDPS, [name]: value });
  return problems.length > 0 ? 'fatal' : warnings.length > 0 ? 'warning' : 'known';
};

describe('unknown variables', () => {
  it.each([
    ['SVC_ALLOWED_DOMAINS', 'known'],
    ['SVC_ALLOWED_DOMAIN', 'fatal'],
    ['SVC_ALOWED_DOMAIN', 'fatal'],
    ['SVC_ALLOEWD_DOMAINS', 'fatal'],
    ['SVC_ALLOWED_DOM', 'warning'],
    ['SVC_IDP', 'fatal'],
    ['SVC_TLS_KEYS', 'fatal'],
    ['SVC_SOMETHING_OF_THEIR_OWN', 'warning'],
    ['PATH', 'known'],
    ['SVCX_IDP', 'known'],
  ])('10.28 %s is %s', (name, expected) => {
    expect(found(name)).toBe(expected);
  });

  it.each([
    ['SVC_IDP_DEMO_ISSUER', 'known'],
    ['SVC_IDP_DEMO_ISUER', 'fatal'],
    ['SVC_IDP_CORP_SAML_METADATA_URL', 'known'],
    ['SVC_IDP_CORP_SAML_NAMES', 'fatal'],
    ['SVC_IDP_DEMOS_CLIENT_ID', 'warning'],
    ['SVC_IDP_OTHER_CLIENT_ID', 'warning'],
    ['SVC_IDP_OTHER_CLIENT_IDS', 'warning'],
    ['SVC_IDP_DEMO_SOMETHING', 'warning'],
  ])('10.28 of a provider, %s is %s: only the suffix is compared', (name, expected) => {
    expect(found(name)).toBe(expected);
  });

  it.each([
    ['SVC_SERVICE_HOST', '10.96.0.1'],
    ['SVC_SERVICE_HOST', 'fd00::1'],
    ['SVC_SERVICE_PORT', '443'],
    ['SVC_SERVICE_PORT_HTTPS', '443'],
    ['SVC_PORT', 'tcp://10.96.0.1:443'],
    ['SVC_PORT_443_TCP', 'tcp://10.96.0.1:443'],
    ['SVC_PORT_443_TCP_PROTO', 'tcp'],
    ['SVC_PORT_443_TCP_PORT', '443'],
    ['SVC_PORT_443_TCP_ADDR', '10.96.0.1'],
    ['SVC_SERVER_PORT', 'tcp://10.96.0.1:443'],
  ])('10.28 %s=%s comes from Kubernetes', (name, value) => {
    expect(found(name, value)).toBe('known');
  });

  it('10.28 a name that only resembles one of Kubernetes is compared', () => {
    expect(found('SVC_MTLSS_PORT', '8443')).toBe('fatal');
  });

  it('the nearest name is suggested, and no value is shown', () => {
    const { problems } = unknownNames({ SVC_ALLOWED_DOMAIN: 'planted' });
    expect(problems.join()).toContain('SVC_ALLOWED_DOMAINS');
    expect(problems.join()).not.toContain('planted');
  });

  it.each([
    ['', '', 0],
    ['abc', 'abc', 0],
    ['abc', 'acb', 1],
    ['abc', 'abcd', 1],
    ['abc', 'bc', 1],
    ['abc', 'xyz', 3],
  ])('counts the letters between %j and %j', (a, b, letters) => {
    expect(editDistance(a, b)).toBe(letters);
    expect(editDistance(b, a)).toBe(letters);
  });
});
