import { describe, expect, it } from 'vitest';
import { readUser } from '../../../../../src/features/scim/schema/read-resource.js';
import { nextUser } from '../../../../../src/features/scim/patch/user-state.js';

const nameOf = (body: object) => nextUser(readUser({ userName: 'b', ...body })).name;

describe('the name of a user', () => {
  it('is the displayName, the formatted name, or the given and the family name', () => {
    const name = { formatted: 'Ms. Jensen', givenName: 'Barbara', familyName: 'Jensen' };
    expect(nameOf({ displayName: 'Babs', name })).toBe('Babs');
    expect(nameOf({ name })).toBe('Ms. Jensen');
    expect(nameOf({ name: { ...name, formatted: '' } })).toBe('Barbara Jensen');
    expect(nameOf({ name: { familyName: 'Jensen' } })).toBe('Jensen');
    expect(nameOf({})).toBeNull();
  });

  it('has at most 256 characters when it is composed, and never half of a surrogate pair', () => {
    expect(nameOf({ name: { formatted: 'x'.repeat(16_384) } })).toBe('x'.repeat(256));
    const parts = { givenName: 'x'.repeat(200), familyName: 'y'.repeat(200) };
    expect(nameOf({ name: parts })).toBe(`${'x'.repeat(200)} ${'y'.repeat(55)}`);
    expect(nameOf({ name: { formatted: `${'x'.repeat(255)}😀` } })).toBe('x'.repeat(255));
  });
});
