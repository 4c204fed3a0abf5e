import { describe, expect, it } from 'vitest';
import { ENTERPRISE_URN as STORED_URN } from '#domain/directory/provisioning/directory-user.js';
import { DomainError } from '#platform/errors/domain-error.js';
import * as language from '../../../../../src/features/scim/language/scim-language.js';

const USER = language.readUser({ userName: 'babs@example.com' });
const TAKEN = new DomainError('uniqueness', 'Another user has this userName.');

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('the language of SCIM in the server', () => {
  it.each([
    ['invalid_request', () => language.readUser({})],
    ['invalid_request', () => language.readGroup({})],
    ['invalid_request', () => language.readOperations({})],
    ['invalid_value', () => language.readReplacement({ active: 'x' }, USER)],
    ['invalid_value', () => language.readGroupReplacement({ displayName: 'T', members: [5] })],
    ['invalid_filter', () => language.parseFilter('userName', language.USER_SCHEMA)],
    [
      'invalid_value',
      () =>
        language.parseProjection(
          { attributes: 'id', excludedAttributes: 'id' },
          language.USER_SCHEMA,
        ),
    ],
    ['no_target', () => language.patchUser(USER, operations({ op: 'remove' }))],
    ['mutability', () => language.patchUser(USER, operations({ op: 'remove', path: 'groups' }))],
    ['no_target', () => language.patchGroup(operations({ op: 'remove' }))],
    ['invalid_value', () => language.readStored({ ...USER, userName: '' })],
  ])('throws its errors as errors of the server: %s', (code, act) => {
    const error = thrownBy(act);
    expect(error).toBeInstanceOf(DomainError);
    expect(error).toMatchObject({ code });
  });

  it('refuses a taken name with the error of the earlier attempt, and leaves it out at the end of access', () => {
    const body = { userName: 'other@example.com' };
    expect(thrownBy(() => language.readReplacement(body, USER, TAKEN))).toBe(TAKEN);
    const { leftOut } = language.readReplacement({ ...body, active: false }, USER, TAKEN);
    expect(leftOut.map(({ error }) => language.domainErrorOf(error))).toEqual([TAKEN]);
    const rename = { op: 'replace', path: 'displayName', value: 'T' };
    expect(thrownBy(() => language.patchGroup(operations(rename), TAKEN))).toBe(TAKEN);
  });

  it('has the URN of the extension under which the directory stores attributes', () => {
    expect(language.ENTERPRISE_URN).toBe(STORED_URN);
  });
});

function operations(...all: readonly unknown[]) {
  return language.readOperations({ Operations: all });
}
