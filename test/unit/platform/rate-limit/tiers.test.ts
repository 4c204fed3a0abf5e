import { describe, expect, it } from 'vitest';
import { TIERS, tierOf } from '#platform/rate-limit/buckets/tiers.js';

describe('the tiers', () => {
  it('have the rates of the requirements', () => {
    expect(TIERS).toEqual({
      authentication: { burst: 8, interval: 2000 },
      issuance: { burst: 15, interval: 2000 },
      general: { burst: 20, interval: 1000 },
    });
  });

  it.each([
    ['authentication', 'POST', '/oauth/token'],
    ['authentication', 'POST', '/oauth/par'],
    ['authentication', 'POST', '/oauth/fido2/challenge'],
    ['authentication', 'POST', '/oauth/device'],
    ['authentication', 'POST', '/oauth/register'],
    ['authentication', 'GET', '/oauth/register/:client'],
    ['authentication', 'POST', '/v1/keys/register/start'],
    ['authentication', 'POST', '/login/webauthn/complete'],
    ['authentication', 'POST', '/enroll/webauthn/start'],
    ['authentication', 'POST', '/device'],
    ['general', 'GET', '/device'],

    ['issuance', 'POST', '/v1/credentials/ssh'],
    ['issuance', 'POST', '/v1/credentials/aws/token'],
    ['issuance', 'POST', '/v1/credentials/github/token'],

    ['general', 'GET', '/oauth/authorize'],
    ['general', 'GET', '/oauth/logout'],
    ['general', 'POST', '/oauth/introspect'],
    ['general', 'POST', '/oauth/revoke'],
    ['general', 'POST', '/api/v1/org/scim-tokens'],
    ['general', 'GET', '/scim/v2/Users/:id'],
    ['general', 'GET', '/v1/keys'],
    ['general', 'DELETE', '/v1/keys/:id'],
    ['general', 'GET', '/api/v1/applications'],
    ['general', 'GET', '/api/v1/applications/:id'],
    ['general', 'POST', '/api/webhooks/github'],
    ['general', 'GET', '/admin/audit'],
    ['general', 'GET', '/v1/credentials/ssh/ca'],
    ['general', 'GET', '/v1/credentials/ssh/krl'],
    ['general', 'GET', '/v1/credentials/ssh/krl/:serial'],
    ['general', 'GET', '/login'],
    ['general', 'GET', '/enroll'],
    ['general', 'GET', '/keys'],
    ['general', 'GET', '/sessions'],
    ['general', 'POST', '/logout'],
    ['general', 'POST', '/certification/complete-login'],

    ['unlimited', 'GET', '/'],
    ['unlimited', 'GET', '/static/:name'],
    ['unlimited', 'GET', '/health'],
    ['unlimited', 'GET', '/health/ready'],
    ['unlimited', 'GET', '/metrics'],
    ['unlimited', 'GET', '/oauth/jwks'],
    ['unlimited', 'GET', '/oauth/userinfo'],
    ['unlimited', 'GET', '/oauth/callback'],
    ['unlimited', 'POST', '/saml/acs'],
    ['unlimited', 'GET', '/saml/metadata'],
    ['unlimited', 'GET', '/openapi.json'],
    ['unlimited', 'GET', '/.well-known/openid-configuration'],

    [undefined, 'GET', '/v1/credentials'],
    [undefined, 'GET', '/wp-login.php'],
  ])('%s: %s %s', (tier, method, path) => {
    expect(tierOf(method, path)).toBe(tier);
  });

  it.each(['/V1/KEYS', '/v1/keys/', '/V1/Keys/7/'])('%s is /v1/keys', (path) => {
    expect(tierOf('GET', path)).toBe('general');
  });
});
