import { errors } from 'oidc-provider';
import { describe, expect, it } from 'vitest';
import { narrowedScopes, targetOf } from '../../../../src/features/oidc/token/narrowing.js';

const ORDERS = 'https://orders.example';
const grantedAt = (resource: string) => (resource === ORDERS ? ['openid', 'orders:read'] : []);

/** Returns the result of an attempt, or its OAuth error code if it failed. */
function outcome<T>(attempt: () => T): T | string {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof errors.OIDCProviderError) return error.error;
    throw error;
  }
}

describe('the target of a token exchange', () => {
  it.each<readonly [string, string[], string | undefined, string | undefined]>([
    ['stays the one the token has', [], ORDERS, ORDERS],
    ['may be named', [ORDERS], ORDERS, ORDERS],
    ['may be named twice', [ORDERS, ORDERS], ORDERS, ORDERS],
    ['stays none', [], undefined, undefined],
    ['may be one that the grant of an opaque token names', [ORDERS], undefined, ORDERS],
    ['is no other', ['https://billing.example'], ORDERS, 'invalid_target'],
    ['is none that the grant does not name', ['https://b.example'], undefined, 'invalid_target'],
    ['is one at most', [ORDERS, 'https://billing.example'], ORDERS, 'invalid_target'],
    ['is compared to the letter', [`${ORDERS}/`], ORDERS, 'invalid_target'],
    ['is not reached by a grant where the token has another', [ORDERS], 'x:', 'invalid_target'],
  ])('%s', (_, targets, audience, expected) => {
    expect(outcome(() => targetOf(targets, { audience, grantedAt }))).toBe(expected);
  });
});

describe('the scopes of a token exchange', () => {
  const client = { scope: 'openid email' };
  const server = { scopes: new Set(['openid', 'orders:read']), identifier: () => ORDERS };
  const opaque = { audience: undefined, scopes: ['openid', 'email', 'profile'], grantedAt };
  const there = { audience: ORDERS, scopes: ['openid', 'orders:read', 'orders:write'], grantedAt };

  it('for an opaque token are limited to those of the client', () => {
    const bounds = { subject: opaque, client, server: undefined };
    expect(narrowedScopes([], bounds)).toEqual(['openid', 'email']);
    expect(narrowedScopes(['email'], bounds)).toEqual(['email']);
    for (const beyond of ['profile', 'orders:read', 'svc:admin']) {
      expect(outcome(() => narrowedScopes(['openid', beyond], bounds))).toBe('invalid_scope');
    }
  });

  it('at a server are limited to those that the client has at that server', () => {
    const bounds = { subject: there, client, server };
    expect(narrowedScopes([], bounds)).toEqual(['openid', 'orders:read']);
    expect(outcome(() => narrowedScopes(['orders:write'], bounds))).toBe('invalid_scope');
  });

  it('for a server are limited to those that were granted at that server', () => {
    const bounds = { subject: opaque, client, server };
    expect(narrowedScopes([], bounds)).toEqual(['openid']);
    expect(outcome(() => narrowedScopes(['orders:read'], bounds))).toBe('invalid_scope');
    expect(outcome(() => narrowedScopes(['email'], bounds))).toBe('invalid_scope');
  });

  it('that were granted elsewhere alone are not given at a server', () => {
    const scopes = ['openid', 'orders:read'];
    const elsewhere = { audience: undefined, scopes, grantedAt: () => ['openid'] };
    expect(narrowedScopes([], { subject: elsewhere, client, server })).toEqual(['openid']);
    // The scopes of a token for this server were limited when the token was issued.
    const issued = { audience: ORDERS, scopes, grantedAt: () => [] };
    expect(narrowedScopes([], { subject: issued, client, server })).toEqual(scopes);
  });

  it('of a server are not given without that server', () => {
    const subject = { audience: undefined, scopes: ['openid', 'orders:read'], grantedAt };
    expect(narrowedScopes([], { subject, client, server: undefined })).toEqual(['openid']);
  });

  it('are named in the error if they are too many', () => {
    const bounds = { subject: opaque, client, server: undefined };
    expect(() => narrowedScopes(['profile', 'x'], bounds)).toThrow(
      expect.objectContaining({
        error_description: 'beyond the subject token or this client',
        scope: 'profile x',
      }),
    );
  });
});
