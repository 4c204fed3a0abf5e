import { describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  GROUP_SCHEMA,
  parseProjection,
  project,
  USER_SCHEMA,
  USER_URN,
  type ProjectionQuery,
} from '@svc/scim-language';

const USER = {
  schemas: [USER_URN, ENTERPRISE_URN],
  id: 'u1',
  userName: 'babs',
  password: 'never',
  name: { givenName: 'Barbara', familyName: 'Jensen' },
  emails: [{ value: 'a@b.c', type: 'work' }, { type: 'home' }],
  groups: [{ value: 'g1' }],
  meta: { resourceType: 'User', created: 'then' },
  [ENTERPRISE_URN]: { department: 'Tours', manager: { value: 'm1', displayName: 'M' } },
};
const shown = (query: ProjectionQuery) =>
  project(USER, parseProjection(query, USER_SCHEMA), USER_SCHEMA);
const { schemas, id } = USER;

describe('attributes (RFC 7644 §3.9)', () => {
  it.each([
    ['userName', { userName: 'babs' }],
    ['ID', {}],
    ['password', {}],
    ['nosuch,,  userName ', { userName: 'babs' }],
    ['name.givenName', { name: { givenName: 'Barbara' } }],
    ['name.givenName,name', { name: USER.name }],
    ['emails.value', { emails: [{ value: 'a@b.c' }] }],
    ['emails.display', {}],
    [`${USER_URN}:userName,meta.created`, { userName: 'babs', meta: { created: 'then' } }],
    [ENTERPRISE_URN, { [ENTERPRISE_URN]: USER[ENTERPRISE_URN] }],
    [`${ENTERPRISE_URN}:department`, { [ENTERPRISE_URN]: { department: 'Tours' } }],
    ['manager.value', { [ENTERPRISE_URN]: { manager: { value: 'm1' } } }],
    ['__proto__,constructor', {}],
  ])('%s', (attributes, expected) => {
    expect(shown({ attributes })).toEqual({ schemas, id, ...expected });
  });

  it('includes every attribute but the password by default', () => {
    const { password: _, ...rest } = USER;
    expect(shown({})).toEqual(rest);
    expect(shown({ attributes: ' ', excludedAttributes: '' })).toEqual(rest);
  });
});

describe('excludedAttributes (RFC 7644 §3.9)', () => {
  it('removes attributes, except those that are always returned', () => {
    const excludedAttributes = `id,schemas,emails,name.familyName,groups,meta,${ENTERPRISE_URN}`;
    expect(shown({ excludedAttributes })).toEqual({
      schemas,
      id,
      userName: 'babs',
      name: { givenName: 'Barbara' },
    });
  });

  it('E16: reports that no members are needed before members are loaded', () => {
    const group = (query: ProjectionQuery) => parseProjection(query, GROUP_SCHEMA).needsMembers;
    expect(group({})).toBe(true);
    expect(group({ excludedAttributes: 'Members' })).toBe(false);
    expect(group({ attributes: 'displayName' })).toBe(false);
    expect(group({ attributes: 'members.value' })).toBe(true);
    expect(group({ excludedAttributes: 'members.value' })).toBe(true);
    const parts = 'members.value,members.$ref,members.display,members.type';
    expect(group({ excludedAttributes: parts })).toBe(false);
    expect(parseProjection({ attributes: 'id' }, USER_SCHEMA).needsGroups).toBe(false);
    expect(parseProjection({}, USER_SCHEMA).needsGroups).toBe(true);
  });

  it('reports whether attributes without a column are needed', () => {
    const user = (query: ProjectionQuery) => parseProjection(query, USER_SCHEMA).needsAttributes;
    expect(user({})).toBe(true);
    expect(user({ excludedAttributes: 'emails,groups' })).toBe(true);
    for (const attributes of [
      'id',
      'userName,externalId,active',
      'groups.display',
      'meta.version',
    ]) {
      expect([attributes, user({ attributes })]).toEqual([attributes, false]);
    }
    for (const attributes of [
      'title',
      'name.givenName',
      'id,emails',
      `${ENTERPRISE_URN}:manager`,
    ]) {
      expect([attributes, user({ attributes })]).toEqual([attributes, true]);
    }
  });

  it('cannot be combined with attributes', () => {
    const both = { attributes: 'id', excludedAttributes: 'meta' };
    expect(() => parseProjection(both, USER_SCHEMA)).toThrow('exclude one another');
    expect(() => parseProjection({ attributes: 'x'.repeat(8193) }, USER_SCHEMA)).toThrow(
      'too long',
    );
  });
});
