import { describe, expect, it } from 'vitest';
import { conditionOf } from '../../../../../src/features/scim/query/filter-condition.js';
import type { FilterFields } from '../../../../../src/features/scim/query/filter-fields.js';
import { ENTERPRISE_URN, GROUP_SCHEMA, parseFilter, USER_SCHEMA } from '@svc/scim-language';

const USERS: FilterFields = {
  resource: USER_SCHEMA,
  columns: {
    id: { kind: 'uuid', expression: 'u.id' },
    userName: { kind: 'text', expression: 'u.user_name' },
    active: { kind: 'boolean', expression: 'u.active' },
  },
  attributes: 'u.attributes',
};
const GROUPS: FilterFields = {
  resource: GROUP_SCHEMA,
  columns: {
    members: {
      kind: 'relation',
      from: 'group_members m',
      on: 'm.group_id = g.id',
      fields: { value: { kind: 'uuid', expression: 'm.user_id' } },
    },
  },
};
const ID = '2819c223-7f76-453a-919d-413861904646';
const compile = (text: string, fields = USERS, first = 1) =>
  conditionOf(parseFilter(text, fields.resource), fields, first);

describe('the SQL of a filter', () => {
  it('binds values, numbered from the given parameter on', () => {
    expect(compile('userName eq "Babs" and title eq "X"', USERS, 4)).toEqual({
      text: `((lower(u.user_name COLLATE "C") = $4::text) AND (lower((u.attributes ->> 'title') COLLATE "C") = $5::text))`,
      values: ['babs', 'x'],
    });
  });

  it('contains no text that a client wrote', () => {
    const hostile = `zq"'); DROP TABLE users; -- $1 %_`;
    for (const operator of ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le']) {
      for (const name of ['userName', 'id', 'externalId', 'emails.value', 'manager', 'schemas']) {
        const { text } = compile(`${name} ${operator} ${JSON.stringify(hostile)}`);
        expect(text).not.toMatch(/zq|DROP|%/);
      }
    }
  });

  it('finds an id by its index, and finds no row for text that is not an id', () => {
    expect(compile(`id eq "${ID}"`)).toEqual({ text: '(u.id = $1::uuid)', values: [ID] });
    expect(compile('id eq "00919288221112222"')).toEqual({ text: 'false', values: [] });
    expect(compile('id ne "x"').text).toBe('(false IS NOT TRUE)');
  });

  it('reads each list and each text once, however many conditions test it', () => {
    const many = (test: (n: number) => string, joint: string) =>
      Array.from({ length: 40 }, (_, n) => test(n)).join(` ${joint} `);
    const reads = (text: string) => [
      text.match(/jsonb_array_elements/g)?.length,
      text.match(/->> '(?:value|familyName)'/g)?.length,
    ];
    const found = compile(many((n) => `emails co "zz${n}"`, 'or'));
    expect(reads(found.text)).toEqual([1, 1]);
    expect(found.values).toHaveLength(40);
    const none = compile(many((n) => `not (emails sw "zz${n}")`, 'and'));
    expect(reads(none.text)).toEqual([1, 1]);
    expect(none.text).toMatch(/^\(\(?EXISTS .* IS NOT TRUE\)$/);
    expect(reads(compile(many((n) => `name.familyName co "zz${n}"`, 'or')).text)[1]).toBe(1);
    // Each condition may be met by a different value of the attribute, so each reads the values
    // itself.
    expect(reads(compile('emails co "a" and emails co "b"').text)).toEqual([2, 2]);
    expect(reads(compile('not (emails co "a") or not (emails co "b")').text)).toEqual([2, 2]);
  });

  it('tests related values by rows of their table', () => {
    expect(compile(`members eq "${ID}"`, GROUPS)).toEqual({
      text: '(EXISTS (SELECT FROM group_members m WHERE m.group_id = g.id AND (m.user_id = $1::uuid)))',
      values: [ID],
    });
    expect(compile('members pr', GROUPS).text).toContain('(m.user_id IS NOT NULL)');
  });

  it('reads extensions under their URN', () => {
    expect(compile('manager eq "m"').text).toContain(
      `((u.attributes -> '${ENTERPRISE_URN}') -> 'manager') ->> 'value'`,
    );
  });

  it('refuses attributes that are computed, and have no column', () => {
    expect(compile('manager pr').text).not.toMatch(/displayName|ref/);
    for (const text of [
      'meta.location pr',
      'meta pr',
      'groups eq "x"',
      'groups[display pr]',
      'manager.displayName eq "x"',
      `not (${ENTERPRISE_URN}:manager.displayName pr)`,
      'manager.$ref pr',
    ]) {
      expect(() => compile(text), text).toThrow('cannot be filtered by');
    }
    expect(() => compile('members.display eq "x"', GROUPS)).toThrow('cannot be filtered by');
    expect(() => compile('displayName eq "x"', GROUPS)).toThrow('cannot be filtered by');
  });
});
