import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool } from '#platform/database/connection.js';
import { assign, makeGroupRow, makeHostGroup } from '../../support/access-rows.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { ReachWorld } from '../../support/reach-world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { rows } from '../../support/rows.js';

/** A request for the groups of hosts that a person reaches. */
interface Asked {
  readonly person: string;
  readonly org: string | null;
  readonly touches: object;
  readonly names: readonly string[] | null;
  readonly host: string | null;
}

const SECOND = 1_000;
const NOW = Math.floor(Date.now() / SECOND);
const FRESH = { key: { at: NOW, uv: null, fips: false } };
const STALE = { key: { at: NOW - 7_200, uv: null, fips: false } };

describe('requests of one batch that share the look-up of groups of hosts', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let world: ReachWorld;
  let other: ReachWorld;
  /** Two people of one SCIM group, one with an assignment besides, and one with nothing. */
  let people: { readonly alike: string[]; readonly assigned: string; readonly open: string };

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 2);
    await dataSource.query(`INSERT INTO deployment (composition) VALUES ('test')`);
    world = await ReachWorld.found(dataSource);
    other = await ReachWorld.found(dataSource);
    const [one, two, assigned, open] = (await world.people(4)).map(({ id }) => id) as [
      string,
      string,
      string,
      string,
    ];
    people = { alike: [one, two], assigned, open };
    const group = await makeGroupRow(dataSource, world.orgId, 'engineers', [one, two, assigned]);
    // A group of SCIM that no group of hosts names makes no difference.
    await makeGroupRow(dataSource, world.orgId, 'choir', [two]);
    const closed = { access: 'assigned' } as const;
    const make = (name: string, logins: string[], rule: object) =>
      makeHostGroup(dataSource, world.orgId, name, logins, { ...closed, ...rule });
    await assign(dataSource, await make('prod', ['deploy', 'ops'], {}), { groupId: group });
    await assign(dataSource, await make('touched', ['root'], { touchWithin: 900 }), {
      groupId: group,
    });
    await assign(dataSource, await make('without', [], {}), { groupId: group });
    await assign(dataSource, await make('own', ['ops'], {}), { userId: assigned });
    const far = await make('far', ['ops'], {});
    await dataSource.query(`UPDATE access_targets SET hosts = '{*.far.test}' WHERE id = $1`, [far]);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  async function reachOf(asked: readonly Asked[]): Promise<unknown[]> {
    const found = await rows<{ n: number }>(
      dataSource,
      `SELECT r.* FROM reach_of_hosts(ARRAY(
         SELECT (k.n, k.person, k.org, k.touches, k.names, k.host)::asked_hosts
         FROM jsonb_to_recordset($1::jsonb) AS k (n int, person uuid, org uuid, touches jsonb, names text[], host text))) r
       ORDER BY r.n`,
      [JSON.stringify(asked.map((request, n) => ({ n, ...request })))],
    );
    return found.map(({ n: _place, ...reach }) => reach);
  }

  const askedOf = (person: string, more: Partial<Asked> = {}): Asked => ({
    person,
    org: world.orgId,
    touches: FRESH,
    names: null,
    host: null,
    ...more,
  });

  /** Every kind of request by each person. */
  const everyRequest = (): Asked[] => {
    const principal = (login: string, name: string) => `${login}@${name}:${world.orgId}`;
    const kinds: Partial<Asked>[] = [
      {},
      { touches: STALE },
      { touches: {} },
      { names: [] },
      { names: [principal('ops', 'prod')] },
      { names: [principal('root', 'touched'), principal('ops', 'own')], touches: STALE },
      { names: [principal('ops', 'nowhere')] },
      { host: 'a.example' },
      { host: 'a.far.test' },
      { host: 'a.nowhere.test' },
      { host: 'a.example', names: [principal('deploy', 'prod')], touches: STALE },
    ];
    const everyPerson = [...people.alike, people.assigned, people.open, randomUUID()];
    return kinds.flatMap((kind) => [
      ...everyPerson.map((person) => askedOf(person, kind)),
      askedOf(people.open, { ...kind, org: other.orgId }),
      askedOf(people.open, { ...kind, org: randomUUID() }),
      askedOf(people.open, { ...kind, org: null }),
    ]);
  };

  it.each([true, false])('gives each of them what it gets alone, by groups: %s', async (by) => {
    await dataSource.query('UPDATE deployment SET access_by_groups = $1', [by]);
    try {
      const asked = everyRequest();
      const alone: unknown[] = [];
      for (const request of asked) alone.push(...(await reachOf([request])));
      expect(alone).toHaveLength(asked.length);
      expect(await reachOf(asked)).toEqual(alone);
    } finally {
      await dataSource.query('UPDATE deployment SET access_by_groups = true');
    }
  });

  it('gives the two people of one SCIM group the same, and the others their own', async () => {
    const [one, two, assigned, open] = (await reachOf(
      [...people.alike, people.assigned, people.open].map((person) => askedOf(person)),
    )) as { carried_names: string[]; listed: { name: string; carried: boolean }[] }[];
    const everyone = expect.stringMatching(/^g/) as string;
    expect(one?.carried_names).toEqual([everyone, 'prod', 'touched']);
    expect(two).toEqual(one);
    expect(assigned?.carried_names).toEqual([everyone, 'own', 'prod', 'touched']);
    expect(open?.carried_names).toEqual([everyone]);
    expect(one?.listed.find(({ name }) => name === 'without')?.carried).toBe(false);
  });

  it('never mixes the conditions of one request into another', async () => {
    const [fresh, stale] = (await reachOf([
      askedOf(people.alike[0] ?? ''),
      askedOf(people.alike[1] ?? '', { touches: STALE }),
    ])) as { carried_names: string[]; ends: Date | null; has_unmet: boolean }[];
    expect([fresh?.has_unmet, fresh?.ends]).toEqual([false, new Date((NOW + 900) * SECOND)]);
    expect([stale?.has_unmet, stale?.ends]).toEqual([true, null]);
    expect(stale?.carried_names).not.toContain('touched');
  });
});
