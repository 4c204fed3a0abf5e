import { describe, expect, it } from 'vitest';
import {
  decideReach,
  fittingTouch,
  hasConditions,
  NO_CONDITIONS,
  TARGET_KINDS,
  type Conditions,
  type KeyTouch,
  type ReachFacts,
  type TargetRule,
} from '#domain/access/reach/decision.js';

const NOW = 1_000_000;

interface Changes extends Partial<Omit<ReachFacts, 'target' | 'person'>> {
  readonly target?: Partial<TargetRule> | null;
  readonly person?: Partial<ReachFacts['person']>;
}

/**
 * Decides about a person without a session, who is assigned to a target of the same organization. A
 * test can change each of these facts.
 */
function decide({ target, person, ...facts }: Changes = {}) {
  const rule: TargetRule = { orgId: 'o1', access: 'assigned', ...NO_CONDITIONS, ...target };
  return decideReach(
    {
      target: target === null ? null : rule,
      person: { orgId: 'o1', active: true, ...person },
      isAssigned: true,
      isInGroup: false,
      touches: null,
      ...facts,
    },
    NOW,
  );
}

const touch = (changes: Partial<KeyTouch> = {}): KeyTouch => ({
  at: NOW - 10,
  uv: null,
  fips: false,
  ...changes,
});

describe('the decision if a person may use a target', () => {
  it.each<[string, Changes, ReturnType<typeof decide>]>([
    ['admits an assigned person', {}, { allowed: true, because: 'person' }],
    [
      'admits by a group',
      { isAssigned: false, isInGroup: true },
      { allowed: true, because: 'group' },
    ],
    [
      'names the person before the group',
      { isInGroup: true },
      { allowed: true, because: 'person' },
    ],
    [
      'admits everyone',
      { target: { access: 'everyone' }, isAssigned: false },
      { allowed: true, because: 'everyone' },
    ],
    [
      'names everyone before the person',
      { target: { access: 'everyone' } },
      { allowed: true, because: 'everyone' },
    ],
    [
      'refuses without an assignment',
      { isAssigned: false },
      { allowed: false, because: 'not_assigned' },
    ],
    [
      'refuses an inactive person',
      { person: { active: false } },
      { allowed: false, because: 'inactive' },
    ],
    ['refuses without a target', { target: null }, { allowed: false, because: 'not_assigned' }],
    [
      'refuses in another organization',
      { person: { orgId: 'o2' } },
      { allowed: false, because: 'not_assigned' },
    ],
    [
      'refuses a group of another organization',
      { person: { orgId: null }, isAssigned: false, isInGroup: true },
      { allowed: false, because: 'not_assigned' },
    ],
    [
      'says inactive before anything else',
      { target: null, person: { active: false } },
      { allowed: false, because: 'inactive' },
    ],
    [
      'checks no touch without a session',
      { target: { touchWithinSeconds: 1 } },
      { allowed: true, because: 'person' },
    ],
    ['needs no touch without conditions', { touches: [] }, { allowed: true, because: 'person' }],
    [
      'says not assigned before a missing touch',
      { isAssigned: false, target: { touchWithinSeconds: 1 }, touches: [] },
      { allowed: false, because: 'not_assigned' },
    ],
  ])('%s', (_, changes, decision) => {
    expect(decide(changes)).toEqual(decision);
  });
});

describe('the conditions of a target', () => {
  it.each<[string, Partial<Conditions>, readonly KeyTouch[], string | true]>([
    ['a touch of the greatest age', { touchWithinSeconds: 10 }, [touch()], true],
    ['an older touch', { touchWithinSeconds: 9 }, [touch()], 'touch'],
    ['no touch', { touchWithinSeconds: 9 }, [], 'touch'],
    ['a certified key', { models: 'fips-only' }, [touch({ fips: true })], true],
    ['another key', { models: 'fips-only' }, [touch()], 'models'],
    ['a verified user', { userVerification: 'required' }, [touch({ uv: NOW - 500 })], true],
    [
      'a user who is not verified',
      { userVerification: 'required' },
      [touch()],
      'user_verification',
    ],
    [
      'both from one key',
      { models: 'fips-only', userVerification: 'required' },
      [touch({ fips: true, uv: NOW })],
      true,
    ],
    [
      'each from another key',
      { models: 'fips-only', userVerification: 'required' },
      [touch({ fips: true }), touch({ uv: NOW })],
      'models',
    ],
    [
      'a verification that is too old',
      { touchWithinSeconds: 20, userVerification: 'required' },
      [touch({ uv: NOW - 21 })],
      'touch',
    ],
    [
      'the newest of two',
      { touchWithinSeconds: 20 },
      [touch({ at: NOW - 21 }), touch({ at: NOW - 20 })],
      true,
    ],
  ])('with %s', (_, target, touches, expected) => {
    const decision = decide({ target, touches });
    expect(decision.allowed ? true : decision.because).toBe(expected);
  });

  it('are none, or any of three', () => {
    expect(hasConditions(NO_CONDITIONS)).toBe(false);
    expect(hasConditions({ ...NO_CONDITIONS, touchWithinSeconds: 0 })).toBe(true);
    expect(hasConditions({ ...NO_CONDITIONS, models: 'fips-only' })).toBe(true);
    expect(hasConditions({ ...NO_CONDITIONS, userVerification: 'required' })).toBe(true);
  });

  it('accept the newest fitting touch, and no later touch of another key', () => {
    const touches = [touch({ at: 5, fips: true }), touch({ at: 9 }), touch({ at: 7, fips: true })];
    expect(fittingTouch({ ...NO_CONDITIONS, models: 'fips-only' }, touches)).toBe(7);
    expect(fittingTouch(NO_CONDITIONS, touches)).toBe(9);
    expect(fittingTouch(NO_CONDITIONS, [])).toBeNull();
    const verified = { ...NO_CONDITIONS, userVerification: 'required' } as const;
    expect(fittingTouch(verified, [touch({ at: 9, uv: 3 }), touch({ at: 8 })])).toBe(3);
  });
});

it('the kinds of targets are those that the database knows', () => {
  expect(TARGET_KINDS).toEqual(['application', 'aws_role', 'host_group', 'github_installation']);
});
