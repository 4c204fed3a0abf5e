import { describe, expect, it } from 'vitest';
import {
  chooseTurns,
  REGISTERED_LIMITS,
  type BusyRequest,
} from '../../../src/domain/oauth/notice-sending/fair-turns.js';
import { logoutClaims } from '../../../src/domain/oauth/logout-notices/logout-token.js';
import { nextTry, retryAfterOf } from '../../../src/domain/oauth/notice-sending/next-try.js';
import { receiverOf } from '../../../src/domain/oauth/logout-notices/receiver.js';

const DAY = 86_400_000;
const FAILED = {
  tries: 1,
  refusals: 0,
  left: DAY,
  told: undefined,
  chance: 0,
} as const;

describe('the next try of a notice', () => {
  it('comes after a second, then after twice as long, up to ten minutes', () => {
    const pauses = Array.from({ length: 12 }, (_, n) => nextTry({ ...FAILED, tries: n + 1 }));
    const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600];
    expect(pauses).toEqual(seconds.map((one) => one * 1000));
    expect(nextTry({ ...FAILED, tries: 5000 })).toBe(600_000);
  });

  it('is spread by a quarter', () => {
    expect(nextTry({ ...FAILED, chance: 1 })).toBe(1250);
  });

  it('comes five times after an answer of 400, and then never', () => {
    const pauses = Array.from({ length: 6 }, (_, n) => nextTry({ ...FAILED, refusals: n + 1 }));
    expect(pauses).toEqual([1000, 10_000, 60_000, 600_000, 3_600_000, undefined]);
  });

  it('is no sooner than the receiver asked for', () => {
    expect(nextTry({ ...FAILED, told: 90 })).toBe(90_000);
    expect(nextTry({ ...FAILED, refusals: 1, told: 90 })).toBe(90_000);
    expect(nextTry({ ...FAILED, tries: 11, told: 1 })).toBe(600_000);
  });

  it('comes at once if the request gave its place to another client', () => {
    expect(nextTry({ ...FAILED, hasGivenWay: true })).toBe(0);
    expect(nextTry({ ...FAILED, hasGivenWay: true, left: 0 })).toBeUndefined();
  });

  it('is as late as the receiver asked for, and never after a day', () => {
    expect(nextTry({ ...FAILED, left: 0 })).toBeUndefined();
    expect(nextTry({ ...FAILED, told: 7_200 })).toBe(7_200_000);
    expect(nextTry({ ...FAILED, told: 999_999 })).toBe(DAY);
    expect(nextTry({ ...FAILED, told: 999_999_999 })).toBe(DAY);
    expect(nextTry({ ...FAILED, left: 1000, told: 90 })).toBe(1000);
  });
});

describe('Retry-After', () => {
  it.each<readonly [string | null, number | undefined]>([
    [null, undefined],
    ['120', 120],
    ['0', 0],
    ['Thu, 01 Jan 1970 00:01:00 GMT', 60],
    ['Wed, 31 Dec 1969 00:00:00 GMT', 0],
    ['soon', undefined],
    ['-5', undefined],
    ['99999999999999999999', undefined],
  ])('%j is %j', (value, seconds) => {
    expect(retryAfterOf(value, 0)).toBe(seconds);
  });
});

describe('the turns of the senders', () => {
  const of = (clientId: string, tenantId: string, since = 0) => ({
    clientId,
    tenantId,
    since,
    hasTaken: false,
    isSlow: false,
  });
  const limits = {
    most: 6,
    ofTenant: 8,
    ofClient: 4,
    unproven: 5,
    unprovenOfTenant: 4,
    failing: 3,
    failingOfTenant: 3,
  };
  const turns = {
    limits,
    busy: [] as BusyRequest[],
    last: '',
    tookLast: (id: string) => (id.startsWith('new') ? undefined : !id.startsWith('hang')),
  };
  const most = (n: number) => ({ ...turns, limits: { ...limits, most: n } });
  const names = (prefix: string, n: number) => Array.from({ length: n }, (_, i) => `${prefix}${i}`);

  it('go around the organizations, however many clients one of them has', () => {
    const due = [...['a', 'b', 'c', 'd', 'e'].map((id) => of(id, 'one')), of('z', 'two')];
    const { counts } = chooseTurns(due, turns);
    expect(counts.get('z')).toBe(3);
    expect([...counts.values()].reduce((sum, n) => sum + n)).toBe(6);
  });

  it('begin behind the organization that was last', () => {
    const due = [of('a', 'one'), of('b', 'two'), of('c', 'three')];
    const first = chooseTurns(due, most(1));
    expect([...first.counts.keys()]).toEqual(['a']);
    const second = chooseTurns(due, { ...most(1), last: first.last });
    expect([...second.counts.keys()]).toEqual(['c']);
    const third = chooseTurns(due, { ...most(1), last: second.last });
    expect([...third.counts.keys()]).toEqual(['b']);
  });

  it('of failing clients come last, and are no more than what they share', () => {
    const hanging = names('hang', 5).map((id) => of(id, id));
    expect(chooseTurns(hanging, turns).counts.size).toBe(3);
    const { counts } = chooseTurns([of('hang1', 'a'), of('a', 'a')], most(1));
    expect([...counts.keys()]).toEqual(['a']);
    const busy = names('hang', 3).map((id) => of(id, 'other'));
    expect(chooseTurns([of('hang9', 'a')], { ...turns, busy }).counts.size).toBe(0);
  });

  it('of clients that were not tried are a part, so that others find requests left', () => {
    const untried = names('new', 12).map((id) => of(id, 'one'));
    const first = chooseTurns(untried, turns);
    expect([...first.counts.values()]).toEqual([1, 1, 1, 1]);
    const busy = untried.slice(0, 4);
    const rest = [...untried.slice(4), of('a', 'one'), of('new', 'two')];
    const { counts } = chooseTurns(rest, { ...turns, busy });
    expect([...counts.keys()].toSorted()).toEqual(['a', 'new']);
  });

  it('of failing clients of an organization leave requests to its clients that were not tried', () => {
    const known = { ...turns, limits: REGISTERED_LIMITS };
    const failing = names('hang', 12).map((id) => of(id, 'one'));
    const busy = [...chooseTurns(failing, known).counts.keys()].map((id) => of(id, 'one'));
    expect(busy).toHaveLength(4);
    const untried = names('new', 8).map((id) => of(id, 'one'));
    expect(chooseTurns([...failing, ...untried], { ...known, busy }).counts.size).toBe(4);
  });

  it('are taken from slow requests, the oldest first, one for each client that has none', () => {
    const known = { ...turns, limits: REGISTERED_LIMITS };
    const slow = (id: string, tenant: string) => ({ ...of(id, tenant), isSlow: true });
    const eight = names('new', 8).map((id) => slow(id, 'one'));
    const chosen = (due: string[], busy: BusyRequest[], tenant = 'one') =>
      chooseTurns(
        due.map((id) => of(id, tenant)),
        { ...known, busy },
      ).yielding.map(({ clientId }) => clientId);
    expect(chosen(['new8', 'new9'], eight)).toEqual(['new0', 'new1']);
    // A slow request gives up its place only for a client that has not failed, has no request and
    // finds no free place. A quick request never does.
    expect(chosen(['hang', 'new3'], eight)).toEqual([]);
    expect(chosen(['new8'], eight, 'two')).toEqual([]);
    expect(chosen(['a'], eight)).toEqual([]);
    const quick = eight.map((one, n) => ({ ...one, isSlow: n === 7 }));
    expect(chosen(['new8', 'new9'], quick)).toEqual(['new7']);
    // A slow request of another organization gives up its place only if all places are taken.
    const full = [...eight, ...names('newer', 4).map((id) => slow(id, 'two'))];
    expect(chosen(['new8'], full, 'three')).toEqual(['new0']);
    expect(chosen(['new8'], full.slice(8), 'one')).toEqual([]);
  });

  it('of a client that took notices before the sender began are no part of that, one at a time', () => {
    const known = names('new', 6).map((id) => ({ ...of(id, 'one'), hasTaken: true }));
    const { counts } = chooseTurns(known, turns);
    expect([...counts.values()]).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('are first of clients that took their last notice, and of the one that waits longest', () => {
    const order = ['new2', 'hang', 'new1', 'b', 'a'].map((id, n) => of(id, 'one', -n));
    const chosen: string[] = [];
    for (let due = order; due.length > 0;) {
      const [id = ''] = [...chooseTurns(due, most(1)).counts.keys()];
      chosen.push(id);
      due = due.filter(({ clientId }) => clientId !== id);
    }
    expect(chosen).toEqual(['a', 'b', 'new1', 'new2', 'hang']);
  });

  it('are no more than a client and an organization may have', () => {
    const four = Array.from({ length: 4 }, () => of('a', 'one'));
    expect(chooseTurns([of('a', 'one')], { ...turns, busy: four }).counts.size).toBe(0);
    const eight = names('b', 8).map((id) => of(id, 'one'));
    const large = { ...most(16), busy: eight };
    expect(chooseTurns([of('a', 'one')], large).counts.size).toBe(0);
    expect(chooseTurns([of('a', 'two')], large).counts.get('a')).toBe(4);
    expect(chooseTurns([], turns).counts.size).toBe(0);
  });
});

describe('a logout token', () => {
  const facts = {
    issuer: 'https://svc.example',
    clientId: 'client',
    subject: 'user',
    sid: null,
    jti: 'id',
    issuedAt: 100,
  };

  it('without a session names the user alone, and never has a nonce', () => {
    const claims = logoutClaims(facts);
    expect('sid' in claims || 'nonce' in claims).toBe(false);
    expect(claims).toMatchObject({ sub: 'user', iat: 100, exp: 220 });
  });

  it.each<readonly [object, string | undefined]>([
    [{}, undefined],
    [{ backchannel_logout_uri: '' }, undefined],
    [{ backchannel_logout_uri: 'https://a.example' }, 'RS256'],
    [{ backchannel_logout_uri: 'https://a.example', svc_profile: 'fapi2' }, 'ES256'],
    [
      { backchannel_logout_uri: 'https://a.example', id_token_signed_response_alg: 'ES256' },
      'ES256',
    ],
    [
      {
        backchannel_logout_uri: 'https://a.example',
        svc_profile: 'fapi2',
        id_token_signed_response_alg: 'RS256',
      },
      'RS256',
    ],
  ])('of the client %j is signed with %s', (metadata, algorithm) => {
    expect(receiverOf({ ...metadata })?.algorithm).toBe(algorithm);
  });
});
