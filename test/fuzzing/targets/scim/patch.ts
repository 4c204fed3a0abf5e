import { isDeepStrictEqual } from 'node:util';
import { patchGroup, patchUser, readOperations, type StoredUser } from '@svc/scim-language';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { ADA, isScimError, WORDS } from './language.js';

const BEFORE = JSON.stringify(ADA);

export const target: FuzzTarget = {
  parser: 'readOperations, patchUser, patchGroup',
  seeds: [
    { op: 'replace', path: 'active', value: false },
    { op: 'Add', path: 'emails', value: [{ value: 'new@example.com', type: 'other' }] },
    { op: 'remove', path: 'emails[type eq "work"]' },
    { op: 'replace', value: { displayName: 'Countess', 'name.givenName': 'A', active: 'False' } },
    { op: 'replace', path: 'emails[type eq "home"].value', value: 'x@example.com' },
    { op: 'add', path: 'members', value: [{ value: '2819c223' }, { value: '9067' }] },
    { op: 'remove', path: 'members[value eq "2819c223"]' },
    {
      op: 'replace',
      path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User',
      value: {},
    },
  ].map((operation) =>
    Buffer.from(
      JSON.stringify({
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [operation],
      }),
    ),
  ),
  dictionary: [
    ...WORDS,
    '"op":"add"',
    '"op":"remove"',
    '"op":"replace"',
    '"path":',
    '"value":',
    '"Operations":[',
    '"active":false',
    '"active":"False"',
    '"__proto__":{"active":false}',
    '"members":[]',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '""',
    '[[]]',
  ],
  structure: wordsBy(/"(?:[^"\\]|\\.)*"|[\w.+-]+|[^]/g),
  longest: 4096,
  run(input) {
    let body: unknown;
    try {
      body = JSON.parse(input.toString());
    } catch {
      return false; // not JSON: the service refuses it before the parser
    }
    const operations = attempt(() => readOperations(body), isScimError);
    if (!operations) return false;
    const group = attempt(() => patchGroup(operations), isScimError);
    const user = attempt(() => patchUser(ADA, operations), isScimError);
    rule(JSON.stringify(ADA) === BEFORE, 'a PATCH changes the user that it was given');
    rule(!('active' in Object.prototype), 'a PATCH changes every object');
    if (user) checkUser(user.user);
    return (user ?? group) !== undefined;
  },
};

/**
 * Checks that a patched user is valid, and that a PATCH that sets `active` to its present value
 * changes nothing.
 */
function checkUser(user: StoredUser): void {
  rule(typeof user.userName === 'string' && user.userName !== '', 'a user without a name');
  rule(typeof user.active === 'boolean', 'a user who is neither active nor inactive');
  const nothing = readOperations({
    Operations: [{ op: 'replace', path: 'active', value: user.active }],
  });
  const again = patchUser(user, nothing).user;
  rule(isDeepStrictEqual(again, user), 'a stored user is read as another user');
}
