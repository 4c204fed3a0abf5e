import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ENTERPRISE_URN,
  meets,
  parseFilter,
  parsePath,
  USER_SCHEMA,
  USER_URN,
  type ComplexValue,
  type Filter,
} from '@svc/scim-language';
import { conditionOf } from '../../src/features/scim/query/filter-condition.js';
import type { FilterFields } from '../../src/features/scim/query/filter-fields.js';
import { openPool } from '#platform/database/connection.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';
import { atScale } from '../support/scale.js';
import { evaluate } from '../support/scim-evaluator.js';

const CASES = atScale({ small: 2_000, full: 10_000 });
const PATHS = atScale({ small: 500, full: 2_000 });
const CASES_PER_STATEMENT = 50;
const PEOPLE_PER_TENANT = 40;

const FIELDS: FilterFields = {
  resource: USER_SCHEMA,
  columns: {
    id: { kind: 'uuid', expression: 'u.id' },
    userName: { kind: 'text', expression: 'u.user_name' },
    externalId: { kind: 'text', expression: 'u.external_id' },
    displayName: { kind: 'text', expression: 'u.display_name' },
    active: { kind: 'boolean', expression: 'u.active' },
    'meta.created': { kind: 'timestamp', expression: 'u.created_at' },
    'meta.lastModified': { kind: 'timestamp', expression: 'u.updated_at' },
    groups: {
      kind: 'relation',
      from: 'scim_memberships m',
      on: 'm.user_id = u.id',
      fields: {
        value: { kind: 'uuid', expression: 'm.group_id' },
        display: { kind: 'text', expression: 'm.group_name' },
      },
    },
  },
  attributes: 'u.attributes',
};

/**
 * Returns a random generator (mulberry32) that gives the same numbers in every run, so that a
 * failing filter fails again.
 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = seeded(7644);
const chance = (share: number) => random() < share;
const below = (limit: number) => Math.floor(random() * limit);
function pick<T>(from: readonly T[]): T {
  const chosen = from[below(from.length)];
  if (chosen === undefined) throw new Error('nothing to pick from');
  return chosen;
}

const TEXTS = [
  'a',
  'A',
  'ab',
  'AB c',
  'b',
  '%',
  '_',
  'a%b',
  "o'neil",
  "'; DROP TABLE scim_people; --",
  '\\',
  'a\\b',
  '"',
  'É',
  'é',
  '\u212A', // the Kelvin sign, which is not the letter K
  'k',
  '😀',
  '\uFFFD',
  '$1',
  'work',
  'home',
  'true',
  'bjensen@example.com',
  'BJensen@Example.com',
];
const INSTANTS = [
  '2011-05-13T04:42:34.000Z',
  '2011-05-13T04:42:34.567Z',
  '2024-02-29T23:59:59.999Z',
];
const GROUPS = Array.from({ length: 4 }, (_, n) => ({ value: randomUUID(), display: TEXTS[n] }));

interface Person {
  readonly id: string;
  readonly [attribute: string]: unknown;
}

const maybe = <T>(name: string, value: () => T) => (chance(0.6) ? { [name]: value() } : {});
const few = <T>(value: () => T) => Array.from({ length: 1 + below(3) }, value);
const labelled = () => ({
  value: pick(TEXTS),
  ...maybe('type', () => pick(['work', 'home', 'Work'])),
  ...maybe('primary', () => chance(0.5)),
});

function randomPerson(): Person {
  const inGroups = GROUPS.filter(() => chance(0.3));
  const extension = {
    ...maybe('department', () => pick(TEXTS)),
    ...maybe('manager', () => ({ value: pick(TEXTS) })),
  };
  const isExtended = Object.keys(extension).length > 0;
  return {
    schemas: isExtended ? [USER_URN, ENTERPRISE_URN] : [USER_URN],
    id: randomUUID(),
    userName: pick(TEXTS),
    active: chance(0.5),
    meta: { created: pick(INSTANTS), lastModified: pick(INSTANTS) },
    ...maybe('externalId', () => pick(TEXTS)),
    ...maybe('displayName', () => pick(TEXTS)),
    ...maybe('title', () => pick(TEXTS)),
    ...maybe('profileUrl', () => pick(TEXTS)),
    ...maybe('name', () => ({ givenName: pick(TEXTS), ...maybe('familyName', () => pick(TEXTS)) })),
    ...maybe('emails', () => few(labelled)),
    ...maybe('roles', () => few(labelled)),
    ...(inGroups.length > 0 ? { groups: inGroups } : {}),
    ...(isExtended ? { [ENTERPRISE_URN]: extension } : {}),
  };
}

const TENANTS = [randomUUID(), randomUUID()].map((org) => ({
  org,
  people: Array.from({ length: PEOPLE_PER_TENANT }, randomPerson),
}));
const IDS = TENANTS.flatMap(({ people }) => people.map(({ id }) => id));

const TEXT_ATTRIBUTES = [
  'userName',
  'USERNAME',
  'externalId',
  'displayName',
  'title',
  'profileUrl',
  'name.givenName',
  'name.FamilyName',
  'emails',
  'emails.value',
  'emails.type',
  'roles.value',
  'manager',
  'manager.value',
  'schemas',
  `${ENTERPRISE_URN}:department`,
  `${USER_URN}:title`,
  'groups.display',
];
const PRESENT = ['name', 'emails', 'roles', 'groups', 'manager', 'meta', 'schemas', 'active', 'id'];
const TEXT_OPERATORS = ['eq', 'EQ', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le'];

const textLiteral = () => JSON.stringify(pick([...TEXTS, '', USER_URN, ENTERPRISE_URN]));
const booleanLiteral = () => pick(['true', 'false', '"True"', '"FALSE"']);
const idLiteral = () =>
  JSON.stringify(pick([...IDS, ...GROUPS.map(({ value }) => value), '5', "'"]));
const textTest = () => `${pick(TEXT_OPERATORS)} ${textLiteral()}`;

function elementFilter(depth: number): string {
  const roll = random();
  if (depth > 0 && roll < 0.3) {
    return `${elementFilter(depth - 1)} ${pick(['and', 'or'])} ${elementFilter(depth - 1)}`;
  }
  if (depth > 0 && roll < 0.4) return `not (${elementFilter(depth - 1)})`;
  if (roll < 0.5) return `${pick(['type', 'primary', 'display', 'value'])} pr`;
  if (roll < 0.65) return `primary ${pick(['eq', 'ne'])} ${booleanLiteral()}`;
  if (roll < 0.7) return `type ${pick(['eq', 'ne'])} null`;
  return `${pick(['type', 'value'])} ${textTest()}`;
}

function leaf(): string {
  const roll = random();
  if (roll < 0.4) return `${pick(TEXT_ATTRIBUTES)} ${textTest()}`;
  if (roll < 0.5) return `${pick([...TEXT_ATTRIBUTES, ...PRESENT])} pr`;
  if (roll < 0.55) return `${pick([...TEXT_ATTRIBUTES])} ${pick(['eq', 'ne'])} null`;
  if (roll < 0.6) return `active ${pick(['eq', 'ne'])} ${booleanLiteral()}`;
  if (roll < 0.7)
    return `${pick(['id', 'groups', 'groups.value'])} ${pick(TEXT_OPERATORS)} ${idLiteral()}`;
  if (roll < 0.8) {
    const operator = pick(['eq', 'ne', 'gt', 'ge', 'lt', 'le']);
    const instant = pick([...INSTANTS, '2011-05-13T06:42:34+02:00']);
    return `meta.${pick(['created', 'lastModified'])} ${operator} "${instant}"`;
  }
  const list = pick(['emails', 'roles']);
  const suffix = chance(0.3) ? `.value ${textTest()}` : '';
  return `${list}[${elementFilter(2)}]${suffix}`;
}

/** Returns several comparisons of one attribute, which the SQL checks together. */
function severalOfOne(): string {
  const name = pick(['emails', 'emails.value', 'roles', 'title', 'manager', 'groups.display']);
  const test = () => `${name} ${textTest()}`;
  const tests = few(() => (chance(0.3) ? `not (${test()})` : test()));
  return `(${[test(), ...tests].join(` ${pick(['and', 'or'])} `)})`;
}

function randomFilter(depth: number): string {
  const roll = random();
  if (roll < 0.15) return severalOfOne();
  if (depth === 0 || roll < 0.4) return leaf();
  if (roll < 0.55) return `not (${randomFilter(depth - 1)})`;
  if (roll < 0.65) return `(${randomFilter(depth - 1)})`;
  return `${randomFilter(depth - 1)} ${pick(['and', 'AND', 'or'])} ${randomFilter(depth - 1)}`;
}

describe('filters in PostgreSQL', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 2);
    await dataSource.query(`
      CREATE TABLE scim_people (
        id uuid PRIMARY KEY, org_id uuid NOT NULL, user_name text NOT NULL, external_id text, display_name text,
        active boolean NOT NULL, created_at timestamptz, updated_at timestamptz, attributes jsonb NOT NULL)`);
    await dataSource.query(
      'CREATE TABLE scim_memberships (user_id uuid, group_id uuid, group_name text)',
    );
    for (const { org, people } of TENANTS) for (const person of people) await insert(org, person);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  async function insert(org: string, person: Person): Promise<void> {
    const {
      schemas: _,
      id,
      userName,
      externalId,
      displayName,
      active,
      meta,
      groups,
      ...rest
    } = person;
    const { created, lastModified } = meta as { created: string; lastModified: string };
    await dataSource.query('INSERT INTO scim_people VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
      id,
      org,
      userName,
      externalId,
      displayName,
      active,
      // PostgreSQL has microseconds, of which clients see the milliseconds. Filters must ignore the
      // other digits.
      created.replace('Z', '321Z'),
      lastModified.replace('Z', '999Z'),
      JSON.stringify(rest),
    ]);
    for (const { value, display } of (groups ?? []) as typeof GROUPS) {
      await dataSource.query('INSERT INTO scim_memberships VALUES ($1, $2, $3)', [
        id,
        value,
        display,
      ]);
    }
  }

  /**
   * Runs all filters in one statement on the users of one organization. Returns the ids that each
   * filter finds.
   */
  async function search(org: string, filters: readonly Filter[]): Promise<string[][]> {
    const values: unknown[] = [org];
    const selects = filters.map((filter, n) => {
      const condition = conditionOf(filter, FIELDS, values.length + 1);
      values.push(...condition.values);
      return `SELECT ${n} AS n, u.id FROM scim_people u WHERE u.org_id = $1 AND (${condition.text})`;
    });
    const found: { n: number; id: string }[] = await dataSource.query(
      selects.join(' UNION ALL '),
      values,
    );
    const lists = filters.map((): string[] => []);
    for (const { n, id } of found) lists[n]?.push(id);
    return lists;
  }

  it(`find in ${CASES} random cases the users that a plain evaluator finds, of one organization alone`, async () => {
    let matches = 0;
    for (let done = 0; done < CASES; done += CASES_PER_STATEMENT) {
      const texts = Array.from({ length: CASES_PER_STATEMENT }, () => randomFilter(3));
      const filters = texts.map((text) => parseFilter(text, USER_SCHEMA));
      const { org, people } = pick(TENANTS);
      const found = await search(org, filters);
      filters.forEach((filter, n) => {
        const expected = people.filter((person) => evaluate(filter, person)).map(({ id }) => id);
        expect(found[n]?.toSorted(), texts[n]).toEqual(expected.toSorted());
        matches += expected.length;
      });
    }
    // Filters that match no user, or all users, would not test much.
    const share = matches / (CASES * PEOPLE_PER_TENANT);
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.8);
  });

  it('select the same elements in the path of a PATCH', () => {
    const people = TENANTS.flatMap((tenant) => tenant.people);
    for (let n = 0; n < PATHS; n += 1) {
      const text = `emails[${elementFilter(2)}]`;
      const filter = parseFilter(text, USER_SCHEMA);
      const path = parsePath(text, USER_SCHEMA);
      const chosen = path.kind === 'attribute' ? path.filter : undefined;
      for (const person of people) {
        const emails = (person['emails'] ?? []) as ComplexValue[];
        const isMet = chosen !== undefined && emails.some((element) => meets(element, chosen));
        expect(isMet, text).toBe(evaluate(filter, person));
      }
    }
  });

  it('never reach another organization, with any negation', async () => {
    const [mine, other] = TENANTS;
    if (!mine || !other) throw new Error('two organizations were made');
    const foreign = other.people[0]?.id ?? '';
    const texts = [
      'not (id pr)',
      'id pr or id pr',
      `id eq "${foreign}"`,
      `not (id eq "${foreign}")`,
      'userName ne ""',
      `userName eq "') OR true --"`,
    ];
    const found = await search(
      mine.org,
      texts.map((text) => parseFilter(text, USER_SCHEMA)),
    );
    const ids = new Set(mine.people.map(({ id }) => id));
    expect(found.flat().filter((id) => !ids.has(id))).toEqual([]);
    expect(found.map(({ length }) => length)).toEqual([0, 40, 0, 40, 40, 0]);
  });

  it('let an index find a user by name', async () => {
    await dataSource.query(
      'CREATE INDEX scim_people_name ON scim_people (org_id, lower(user_name COLLATE "C"))',
    );
    const { text, values } = conditionOf(parseFilter('userName eq "X"', USER_SCHEMA), FIELDS, 2);
    const runner = dataSource.createQueryRunner();
    await runner.query('SET enable_seqscan = off');
    const plan: unknown = await runner.query(
      `EXPLAIN SELECT u.id FROM scim_people u WHERE u.org_id = $1 AND (${text})`,
      [TENANTS[0]?.org, ...values],
    );
    await runner.release();
    expect(JSON.stringify(plan)).toMatch(/Index Cond: .*lower\(\(user_name\)/);
  });
});
