import { describe, expect, it } from 'vitest';
import { patchUser, readOperations, readReplacement, readUser } from '@svc/scim-language';
import { nextUser } from '../../../../../src/features/scim/resources/user-state.js';

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

describe('the body of a user', () => {
  it('takes the e-mail from userName if that is an address, else from the primary, else from the first', () => {
    const emails = [{ value: 'First@Example.com' }, { value: ' Prime@Example.com', primary: true }];
    const emailOf = (body: object) => nextUser(readUser({ userName: 'babs', ...body })).email;
    expect(emailOf({ userName: 'Name@Example.com', emails })).toBe('name@example.com');
    expect(emailOf({ emails })).toBe('prime@example.com');
    expect(emailOf({ emails: emails.slice(0, 1) })).toBe('first@example.com');
    expect(emailOf({ emails: [{ value: 'none', primary: true }, ...emails.slice(0, 1)] })).toBe(
      'first@example.com',
    );
    expect(emailOf({ emails: [{ value: 'none' }] })).toBeNull();
    expect(emailOf({})).toBeNull();
  });
});

describe('the address of a user', () => {
  const before = readUser({ userName: 'babs@example.com', active: false });

  it('follows a user to a new name and address', () => {
    const operation = { op: 'replace', path: 'userName', value: ' Barbara@Example.com ' };
    const { user } = patchUser(before, readOperations({ Operations: [operation] }));
    expect(nextUser(user)).toMatchObject({
      userName: 'Barbara@Example.com',
      email: 'barbara@example.com',
    });
  });

  it('follows a PUT, and stays when the PUT names none', () => {
    const emailAfter = (body: object) => nextUser(readReplacement(body, before).user).email;
    expect(emailAfter({ title: 'Chief' })).toBe('babs@example.com');
    expect(emailAfter({ userName: 'new@example.com' })).toBe('new@example.com');
  });
});
