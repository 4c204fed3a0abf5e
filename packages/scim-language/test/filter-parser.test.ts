import { describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  GROUP_SCHEMA,
  GROUP_URN,
  parseFilter,
  parsePath,
  ScimError,
  USER_SCHEMA,
  USER_URN,
} from '@svc/scim-language';
import { evaluate } from '../../../test/support/scim-evaluator.js';

const BJENSEN = {
  schemas: [USER_URN, ENTERPRISE_URN],
  id: '2819c223-7f76-453a-919d-413861904646',
  externalId: 'BJensen',
  userName: 'bjensen@example.com',
  name: { familyName: "O'Malley", givenName: 'Barbara' },
  displayName: 'Babs Jensen',
  title: 'Tour Guide',
  userType: 'Employee',
  active: true,
  emails: [
    { value: 'bjensen@example.com', type: 'work', primary: true },
    { value: 'babs@jensen.org', type: 'home' },
  ],
  roles: [{ value: '{"id":"18d14569","value":"Engineer"}', primary: true }],
  groups: [{ value: 'e9e30dba-f08f-4109-8486-d5c6a331660a', display: 'Tour Guides' }],
  meta: {
    resourceType: 'User',
    created: '2010-01-23T04:56:22.000Z',
    lastModified: '2011-05-13T04:42:34.000Z',
  },
  [ENTERPRISE_URN]: { employeeNumber: '701984', manager: { value: '26118915-6090-4610' } },
};

const finds = (text: string) => evaluate(parseFilter(text, USER_SCHEMA), BJENSEN);

function refusal(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof ScimError) return error.scimType;
    throw error;
  }
  return undefined;
}
const refused = (text: string) => refusal(() => parseFilter(text, USER_SCHEMA));

describe('filters of RFC 7644 §3.4.2.2', () => {
  it.each([
    'userName Eq "bjensen@example.com"',
    `name.familyName co "O'Malley"`,
    'userName sw "B"',
    `${USER_URN}:userName sw "B"`,
    'title pr',
    'meta.lastModified ge "2011-05-13T04:42:34Z"',
    'meta.lastModified le "2011-05-13T04:42:34Z"',
    'title pr and userType eq "Employee"',
    'title pr or userType eq "Intern"',
    `schemas eq "${ENTERPRISE_URN}"`,
    'userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")',
    'userType eq "Employee" and (emails.type eq "work")',
    'userType eq "Employee" and emails[type eq "work" and value co "@example.com"]',
    'emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]',
  ])('%s matches', (text) => expect(finds(text)).toBe(true));

  it.each([
    'meta.lastModified gt "2011-05-13T04:42:34Z"',
    'meta.lastModified lt "2011-05-13T04:42:34Z"',
    'userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")',
    'emails[type eq "home" and value co "@example.com"]',
  ])('%s does not match', (text) => expect(finds(text)).toBe(false));

  it('bind and tighter than or, and not only to the next factor', () => {
    expect(finds('title pr or title pr and userName eq "nobody"')).toBe(true);
    expect(finds('(title pr or title pr) and userName eq "nobody"')).toBe(false);
    expect(finds('not (title pr) or title pr')).toBe(true);
    expect(finds('NOT (title pr OR title pr)')).toBe(false);
  });
});

describe('filters that identity providers send', () => {
  it.each([
    ['O1', 'userName eq "BJENSEN@example.com"'],
    ['E2', 'emails[type eq "work"].value eq "bjensen@example.com"'],
    ['E2', 'externalId eq "BJensen" and active eq true'],
    ['E11', 'id eq "2819c223-7f76-453a-919d-413861904646" and manager eq "26118915-6090-4610"'],
    ['E12', 'roles[primary eq "True"].value co "Engineer"'],
    ['Ping', `${ENTERPRISE_URN.toUpperCase()}:EMPLOYEENUMBER EQ "701984"`],
    ['OneLogin', 'active eq "true"'],
    ['JumpCloud', 'employeeNumber eq "701984" and groups.display eq "tour guides"'],
  ])('%s %s', (_, text) => expect(finds(text)).toBe(true));

  it('E21 find members of a group by id', () => {
    const filter = parseFilter('id eq "g" and members eq "m"', GROUP_SCHEMA);
    expect(evaluate(filter, { id: 'g', members: [{ value: 'n' }, { value: 'm' }] })).toBe(true);
    expect(evaluate(filter, { id: 'g', members: [{ value: 'n' }] })).toBe(false);
  });

  it('compare externalId and id case-sensitively', () => {
    expect(finds('externalId eq "bjensen"')).toBe(false);
    expect(finds('id eq "2819C223-7f76-453a-919d-413861904646"')).toBe(false);
  });
});

describe('an absent attribute', () => {
  it('is equal to no value, and unequal to every value', () => {
    expect(finds('nickName eq "x"')).toBe(false);
    expect(finds('nickName ne "x"')).toBe(true);
    expect(finds('not (nickName eq "x")')).toBe(true);
    expect(finds('nickName eq null')).toBe(true);
    expect(finds('title ne null')).toBe(true);
    expect(finds('emails.display eq null')).toBe(true);
    expect(finds('nickName pr')).toBe(false);
  });

  it('matches ne on a list when no element is equal, and ne in brackets when one element differs', () => {
    expect(finds('emails.type ne "work"')).toBe(false);
    expect(finds('emails[type ne "work"]')).toBe(true);
    expect(finds('emails[type eq "home"].value ne "babs@jensen.org"')).toBe(false);
  });
});

describe('JSON strings', () => {
  it('accept every escape', () => {
    const filter = (text: string) => parseFilter(text, USER_SCHEMA);
    expect(filter('title eq "a\\"b\\\\c\\u00e9\\/\\n)"')).toMatchObject({ value: 'a"b\\cé/\n)' });
  });

  it.each([
    'title eq "open',
    'title eq "open\\"',
    'title eq "\\x"',
    'title eq "a\u0000b"',
    'title eq "\\u0000"',
    'title eq "\\ud800"',
    'title eq "line\nbreak"',
  ])('do not include %j', (text) => expect(refused(text)).toBe('invalidFilter'));
});

describe('refused filters', () => {
  it.each([
    '',
    ' ',
    'title',
    'title eq',
    'title is "x"',
    'title eq x',
    'title eq 5',
    'id eq 42',
    'title eq true',
    'title gt null',
    'active eq "yes"',
    'active gt true',
    'active co "t"',
    'x509Certificates.value gt "a"',
    'meta.created co "2011"',
    'meta.created gt "yesterday"',
    'meta.created gt "2011-02-30T25:00:00Z"',
    'meta.created gt "0000-01-01T00:00:00Z"',
    'name eq "x"',
    'addresses eq "x"',
    'password eq "hunter2"',
    'password pr',
    'unknown eq "x"',
    'urn:example:User:title eq "x"',
    `${GROUP_URN}:displayName eq "x"`,
    'emails.unknown eq "x"',
    'emails[unknown eq "x"]',
    'emails[type eq "work"].unknown pr',
    'emails[type eq "work"',
    'emails[type eq "work"]]',
    'emails[]',
    'name[givenName eq "x"]',
    'emails[emails[type eq "x"]]',
    'title pr title pr',
    'title pr and',
    'and title pr',
    'not title pr',
    '(title pr',
    'title pr)',
    '()',
    '__proto__ pr',
    'constructor eq "x"',
    'name.__proto__ pr',
    'emails[constructor pr]',
    'title\u0000 pr',
  ])('%j', (text) => expect(refused(text)).toBe('invalidFilter'));

  it('exceed a limit of bytes, depth or conditions', () => {
    expect(refused('('.repeat(60_000))).toBe('invalidFilter');
    const nested = (depth: number) => `${'('.repeat(depth)}title pr${')'.repeat(depth)}`;
    expect(refused(nested(32))).toBeUndefined();
    expect(refused(nested(33))).toBe('invalidFilter');
    const chain = (length: number) => Array.from({ length }, () => 'title pr').join(' or ');
    expect(refused(chain(199))).toBeUndefined();
    expect(refused(chain(200))).toBe('invalidFilter');
    expect(refused(`title eq "${'é'.repeat(4091)}"`)).toBe('invalidFilter');
  });

  it('read too many lists, where tests of one list joined by or count once', () => {
    const many = (howMany: number, test: string, joint: string) =>
      Array.from({ length: howMany }, () => test).join(` ${joint} `);
    expect(refused(many(99, 'emails co "x"', 'or'))).toBeUndefined();
    expect(refused(many(60, 'not (emails co "x")', 'and'))).toBeUndefined();
    expect(refused(many(20, 'emails co "x"', 'and'))).toBeUndefined();
    for (const [test, joint] of [
      ['emails co "x"', 'and'],
      ['groups[display pr]', 'and'],
      ['not (emails co "x")', 'or'],
      ['(emails co "x" and title pr)', 'or'],
      ['emails pr', 'or'],
    ] as const) {
      expect(refused(many(21, test, joint)), test).toBe('tooMany');
    }
  });

  it('are reported with the position of the error and none of their text', () => {
    const detail = () => parseFilter('title eq "a" or <script> pr', USER_SCHEMA);
    expect(detail).toThrow('The text from character 17 is not a known attribute.');
    expect(detail).not.toThrow('script');
  });
});

describe('paths of RFC 7644 §3.5.2', () => {
  const path = (text: string, resource = USER_SCHEMA) => {
    const parsed = parsePath(text, resource);
    return parsed.kind === 'attribute' ? parsed.target.path : parsed;
  };

  it('name attributes and sub-attributes, with and without URN', () => {
    expect(path('members', GROUP_SCHEMA)).toBe('members');
    expect(path('Name.FamilyName')).toBe('name.familyName');
    expect(path(`${USER_URN}:name.givenName`)).toBe('name.givenName');
    expect(path(`${ENTERPRISE_URN}:employeeNumber`)).toBe(`${ENTERPRISE_URN}:employeeNumber`);
    expect(path(`${ENTERPRISE_URN.toLowerCase()}:MANAGER.value`)).toBe(
      `${ENTERPRISE_URN}:manager.value`,
    );
    expect(path('manager')).toBe(`${ENTERPRISE_URN}:manager`);
    expect(parsePath(ENTERPRISE_URN, USER_SCHEMA)).toMatchObject({
      kind: 'schema',
      schema: { id: ENTERPRISE_URN },
    });
  });

  it('select elements', () => {
    expect(parsePath('addresses[type eq "work"]', USER_SCHEMA)).toMatchObject({
      target: { path: 'addresses' },
      filter: { kind: 'compare', value: 'work' },
    });
    expect(parsePath('members[value eq "2819c223-7f76"].displayName', GROUP_SCHEMA)).toEqual({
      kind: 'unknown',
      name: 'members.displayname',
    });
    expect(path('emails[type eq "work" and primary eq "True"].value')).toBe('emails.value');
  });

  it('distinguish an unknown attribute from a malformed path', () => {
    for (const unknown of ['nosuch', 'name.nosuch', 'urn:example:2.0:User:x', 'x[y eq 1].z']) {
      expect(path(unknown), unknown).toMatchObject({ kind: 'unknown' });
    }
    for (const text of ['__proto__', 'constructor', 'name.__proto__', 'emails.constructor']) {
      expect(path(text), text).toMatchObject({ kind: 'unknown' });
    }
    const code = (text: string) => refusal(() => parsePath(text, USER_SCHEMA));
    for (const text of ['"', '(', 'name x', 'emails[type eq "work"', 'na\u0000me', '[a]', ' ']) {
      expect(code(text), text).toMatch(/^invalid(?:Path|Filter)$/);
    }
    expect(code('emails[nosuch eq "x"]')).toBe('invalidFilter');
    expect(code('name[givenName eq "x"]')).toBe('invalidPath');
    expect(code('('.repeat(60_000))).toBe('invalidPath');
  });
});

describe('hostile filters', () => {
  it.each([
    ['open brackets', '('.repeat(8192)],
    ['brackets of lists', 'emails['.repeat(1170)],
    ['nots', 'not ('.repeat(1630)],
    ['backslashes', `title eq "${'\\'.repeat(8170)}`],
    ['words', 'a '.repeat(4096)],
    ['dots', '.'.repeat(8192)],
    ['URNs', `${USER_URN}:`.repeat(200).slice(0, 8192)],
    ['spaces', ' '.repeat(8192)],
    ['digits', `title eq ${'9'.repeat(8000)}`],
  ])('made of %s are refused at once', (_, text) => {
    const start = performance.now();
    for (let i = 0; i < 20; i += 1) expect(refused(text)).toBe('invalidFilter');
    expect(performance.now() - start).toBeLessThan(1000);
  });
});
