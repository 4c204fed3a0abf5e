import { ENTERPRISE_URN, ScimError, USER_URN, readUser } from '@svc/scim-language';

/** Returns true for the error by which the package scim-language refuses an input. */
export const isScimError = (error: unknown) => error instanceof ScimError;

/** Words of SCIM filters and paths, which mutants contain often. */
export const WORDS = [
  'eq',
  'ne',
  'co',
  'sw',
  'ew',
  'gt',
  'ge',
  'lt',
  'le',
  'pr',
  'and',
  'or',
  'not',
  'userName',
  'emails',
  'emails.value',
  'emails[type eq "work"]',
  'name.givenName',
  'active',
  'meta.created',
  'meta.lastModified',
  'members',
  'members.value',
  'displayName',
  'addresses',
  'groups',
  'roles',
  'photos',
  'x509Certificates',
  'externalId',
  'id',
  'schemas',
  'password',
  `${USER_URN}:userName`,
  `${ENTERPRISE_URN}:manager.value`,
  ENTERPRISE_URN,
  '"2026-01-15T12:00:00Z"',
  '"work"',
  'true',
  'false',
  'null',
  '(',
  ')',
  '[',
  ']',
  '"\\ud800"',
];

/** Matches one part of a filter: a string, a word, or another character, such as a bracket. */
export const TOKENS = /"(?:[^"\\]|\\.)*"|[\w.:$-]+|[^]/g;

/** A user with values of most kinds, to which filters and operations are applied. */
export const ADA = readUser({
  schemas: [USER_URN, ENTERPRISE_URN],
  userName: 'ada@example.com',
  externalId: 'ada-1',
  displayName: 'Ada',
  title: 'Engineer',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  emails: [
    { value: 'ada@example.com', type: 'work', primary: true },
    { value: 'ada@home.example', type: 'home' },
  ],
  addresses: [{ type: 'work', locality: 'London' }],
  roles: [{ value: 'admin' }, { value: 'reader' }],
  [ENTERPRISE_URN]: { employeeNumber: '7', manager: { value: 'm1' } },
});

/** The user {@link ADA} as a SCIM client sees it. */
export const ADA_JSON: object = {
  ...ADA.attributes,
  userName: ADA.userName,
  externalId: ADA.externalId,
  active: ADA.active,
  displayName: ADA.displayName,
  id: '0199d0c6',
  meta: {
    resourceType: 'User',
    created: '2026-01-15T12:00:00.000Z',
    lastModified: '2026-01-16T12:00:00.000Z',
  },
  groups: [{ value: 'g1', display: 'Group', type: 'direct' }],
};
