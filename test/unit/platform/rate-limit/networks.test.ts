import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EnrollController } from '../../../../src/features/webauthn/enroll.controller.js';
import { LoginController } from '../../../../src/features/webauthn/login.controller.js';
import { RegistrationController } from '../../../../src/features/oidc/registration/registration.controller.js';
import { TokenController } from '../../../../src/features/oidc/token/token.controller.js';
import { compiledRoutes } from '../../../support/compiled-routes.js';
import { isFailedAttempt } from '#platform/rate-limit/failed-attempt.js';
import { GRACE } from '#platform/gcra/gcra.js';
import { LocalBuckets } from '#platform/rate-limit/buckets/local-buckets.js';
import { Networks, SITE_RATE } from '#platform/rate-limit/networks.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

describe('10.9 the failed attempts of an IPv6 /48', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Returns an IP address in the client network `n` of the site. */
  const client = (n: number) => `2001:db8:7:${n.toString(16)}::1`;

  it('have a bucket of 64 times the tier', () => {
    const { burst, interval } = TIERS.authentication;
    expect(SITE_RATE).toEqual({ burst: 64 * burst, interval: interval / 64 });
  });

  it('block the whole network once they are too many, for the announced time', () => {
    const networks = new Networks(new LocalBuckets(), 'failures');
    for (let n = 0; n < SITE_RATE.burst; n += 1) {
      expect(networks.wait(client(n))).toBe(0);
      networks.begin(client(n))(true);
    }
    const wait = networks.wait(client(60_000));
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(SITE_RATE.interval + GRACE);
    expect(networks.wait('2001:db8:8::1')).toBe(0);
    expect(networks.wait('192.0.2.1')).toBe(0);
    vi.advanceTimersByTime(Math.ceil(wait));
    expect(networks.wait(client(1))).toBe(0);
  });

  it('are counted alone: successful attempts cost nothing', () => {
    const networks = new Networks(new LocalBuckets(), 'failures');
    for (let n = 0; n < 5000; n += 1) networks.begin(client(n))(false);
    expect(networks.wait(client(1))).toBe(0);
  });

  it('do not exceed the burst when many are in progress at once', () => {
    const networks = new Networks(new LocalBuckets(), 'failures');
    const underWay: ((hasFailed: boolean) => void)[] = [];
    for (let n = 0; n < 2000; n += 1) {
      if (networks.wait(client(n)) === 0) underWay.push(networks.begin(client(n)));
    }
    expect(underWay).toHaveLength(SITE_RATE.burst);
    for (const done of underWay) done(false);
    expect(networks.wait(client(1))).toBe(0);
  });

  it('never make the wait longer than one interval', () => {
    const networks = new Networks(new LocalBuckets(), 'failures');
    for (let n = 0; n < 20_000; n += 1) networks.begin(client(n))(true);
    expect(networks.wait(client(1))).toBeLessThanOrEqual(SITE_RATE.interval + GRACE);
  });
});

describe('10.9 a failed attempt', () => {
  const routes = compiledRoutes(
    class {},
    EnrollController,
    LoginController,
    RegistrationController,
    TokenController,
  );

  it.each([
    [true, 'POST', '/oauth/token', 401, 'invalid_client'],
    [true, 'POST', '/oauth/token', 400, 'invalid_grant'],
    [true, 'POST', '/oauth/token', 400, 'invalid_client'],
    [true, 'POST', '/v1/keys/register/start', 401, 'unauthenticated'],
    [true, 'POST', '/login/webauthn/complete', 400, 'assertion_rejected'],
    [true, 'POST', '/enroll/webauthn/complete', 400, 'attestation_rejected'],
    [true, 'POST', '/Login/webauthn/complete/', 400, 'assertion_rejected'],

    [false, 'POST', '/oauth/token', 200, undefined],
    [false, 'POST', '/oauth/token', 400, 'authorization_pending'],
    [false, 'POST', '/oauth/token', 400, 'slow_down'],
    [false, 'POST', '/oauth/token', 400, 'use_dpop_nonce'],
    [false, 'POST', '/v1/keys/register/start', 401, 'use_dpop_nonce'],
    [false, 'POST', '/v1/keys/register/start', 401, 'insufficient_user_authentication'],
    [false, 'POST', '/login/webauthn/start', 400, 'malformed_body'],
    [false, 'POST', '/login/webauthn/complete', 503, 'unavailable'],
    [false, 'POST', '/oauth/par', 201, undefined],
    // An anonymous registration is limited by its own bucket, so it is not a failed attempt.
    [false, 'POST', '/oauth/register', 201, undefined],
    [false, 'GET', '/oauth/register/some-client', 200, undefined],
  ])('is %s: %s %s, answered %i %s', (expected, method, path, status, error) => {
    const { failureStatus } = routes.ofPath(method, path);
    expect(isFailedAttempt({ status, error }, failureStatus)).toBe(expected);
  });
});
