import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import { ENTRY_BYTES } from '#domain/audit/seal/leaf-entry.js';
import { readEntries } from '#domain/audit/seal/sealed-rows.repository.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { writeEvent } from '../../support/feed-reader.js';
import { connectTo, endEpoch, TestSeal } from '../../support/seal.js';

/** The number of events of each organization. A checkpoint is signed after each event. */
const EVENTS = 5;

/** The index, from 0, of the event that the tests alter. */
const THIRD = 2;

let database: TestDatabase;
let dataSource: DataSource;
let seal: TestSeal;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await connectTo(database);
  seal = new TestSeal(dataSource);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

/**
 * Creates an organization, checks that its log is whole, and tampers with the log. Returns what a
 * second check finds.
 */
async function tamper(act: (org: string, ids: readonly string[]) => Promise<unknown>) {
  const { org, ids } = await seal.organization(EVENTS);
  const witness = await seal.checkpoints(org);
  expect(seal.check(await seal.export(org), witness)).toMatchObject({
    findings: [],
    counts: { rows: EVENTS, expired: 0, unproven: 0, faults: 0 },
    provenAt: witness.at(-1)?.time,
  });
  await act(org, ids);
  const { findings } = seal.check(await seal.export(org), witness);
  return { org, ids, witness, findings };
}

const run = (text: string, ...values: unknown[]) => dataSource.query(text, values);

/** Returns the line with which the leaves of a tree begin. */
function treeLine(tree: string, epoch: string, from: number, range: readonly string[]): string {
  return JSON.stringify({ tree, epoch, size: from, from, range });
}

const treeOf = ([first = '{}']: readonly string[]) =>
  String((JSON.parse(first) as { tree?: string }).tree);

/** Changes the row in a line of an export, and the entry so that it fits the row. */
function withOtherRow(line: string): string {
  const [, begin = '', base64 = '', row = ''] =
    /^(.*"entry":")([^"]+)","row":(.*)\}$/.exec(line) ?? [];
  const other = row.replace('"user_agent":null', '"user_agent":"forged"');
  expect(other).not.toBe(row);
  const entry = Buffer.from(base64, 'base64');
  createHash('sha256')
    .update(other)
    .digest()
    .copy(entry, ENTRY_BYTES - 32);
  return `${begin}${entry.toString('base64')}","row":${other}}`;
}

describe('a change of the audit log by SQL is found, with the name of the row', () => {
  it.each([
    ['details', `details = '{"forged": true}'`],
    ['type', "type = 'login_success'"],
    ['actor', 'actor_id = gen_random_uuid()'],
    ['time', "created_at = created_at - interval '1 microsecond'"],
    ['class', "class = 'admin'"],
    ['address', "ip = '192.0.2.1'"],
  ])('changed %s', async (_, change) => {
    const { ids, findings } = await tamper((_org, all) =>
      run(`UPDATE audit_events SET ${change} WHERE id = $1`, all[THIRD]),
    );
    expect(findings).toMatchObject([{ fault: 'changed', id: ids[THIRD], index: THIRD }]);
  });

  it('a removed row', async () => {
    const { ids, findings } = await tamper((_org, all) =>
      run('DELETE FROM audit_events WHERE id = $1', all[THIRD]),
    );
    expect(findings).toMatchObject([{ fault: 'removed', id: ids[THIRD], index: THIRD }]);
  });

  it('a row that was inserted among sealed ones', async () => {
    const forged = randomUUID();
    const { findings } = await tamper((org, all) =>
      run(
        `INSERT INTO audit_events (id, type, class, org_id, epoch, xid)
         SELECT $1, 'logout', 'auth', org_id, epoch, xid FROM audit_events WHERE id = $2 AND org_id = $3`,
        forged,
        all[THIRD],
        org,
      ),
    );
    expect(findings).toMatchObject([{ fault: 'inserted', id: forged, index: undefined }]);
  });

  it('two rows that changed places', async () => {
    const { ids, findings } = await tamper((_org, all) =>
      run(
        `UPDATE audit_events e SET xid = o.xid FROM audit_events o
         WHERE (e.id, o.id) IN (($1, $2), ($2, $1))`,
        all[THIRD],
        all[THIRD + 1],
      ),
    );
    expect(findings.map(({ id }) => id).toSorted()).toEqual(
      [ids[THIRD], ids[THIRD + 1]].toSorted(),
    );
    expect(findings.map(({ fault }) => fault)).not.toContain('removed');
  });

  it('two rows that changed their contents', async () => {
    const { ids, findings } = await tamper(async (_org, all) => {
      await run(`UPDATE audit_events SET user_agent = 'a' WHERE id = $1`, all[THIRD]);
      await run(
        `UPDATE audit_events e SET user_agent = o.user_agent, created_at = o.created_at FROM audit_events o
         WHERE (e.id, o.id) IN (($1, $2), ($2, $1))`,
        all[THIRD],
        all[THIRD + 1],
      );
    });
    expect(findings).toMatchObject([
      { fault: 'changed', id: ids[THIRD] },
      { fault: 'changed', id: ids[THIRD + 1] },
    ]);
  });

  it('a row that was moved to another organization, in the logs of both', async () => {
    const other = await seal.organization(EVENTS);
    const witness = await seal.checkpoints(other.org);
    const { ids, findings } = await tamper((_org, all) =>
      run(
        `UPDATE audit_events e SET org_id = $1, xid = o.xid FROM audit_events o
         WHERE e.id = $2 AND o.id = $3`,
        other.org,
        all[THIRD],
        other.ids[THIRD],
      ),
    );
    expect(findings).toMatchObject([{ fault: 'moved', id: ids[THIRD], index: THIRD }]);
    expect(seal.check(await seal.export(other.org), witness).findings).toMatchObject([
      { fault: 'inserted', id: ids[THIRD] },
    ]);
  });

  it('an altered hash of the seal, and the row is as it was', async () => {
    const { ids, findings } = await tamper((org) =>
      run(
        'UPDATE audit_leaves SET entries = set_byte(entries, 56, get_byte(entries, 56) # 1) WHERE tree = $1 AND first = $2',
        org,
        THIRD,
      ),
    );
    expect(findings).toMatchObject([{ fault: 'seal changed', id: ids[THIRD], index: THIRD }]);
  });

  it('a row and its hash altered together, which the checkpoint contradicts', async () => {
    const { ids, findings } = await tamper(async (org, all) => {
      await run("UPDATE audit_events SET user_agent = 'forged' WHERE id = $1", all[THIRD]);
      const forged = await readEntries(dataSource.manager, org, FIRST_PLACE, EVENTS);
      const entry = forged?.entries.subarray(THIRD * ENTRY_BYTES, (THIRD + 1) * ENTRY_BYTES);
      await run(
        'UPDATE audit_leaves SET entries = $1 WHERE tree = $2 AND first = $3',
        entry,
        org,
        THIRD,
      );
    });
    expect(findings).toMatchObject([
      { fault: 'changed with its seal', id: ids[THIRD], index: THIRD },
    ]);
  });

  it.each([
    ['before the first position', '-1'],
    ['after the present epoch', '9000000000000000000'],
  ])('a row at a position that the feed never shows, %s', async (_, epoch) => {
    const forged = randomUUID();
    const { findings } = await tamper((org) =>
      run(
        `INSERT INTO audit_events (id, type, class, org_id, epoch, xid)
         VALUES ($1, 'login_success', 'auth', $2, $3, '1')`,
        forged,
        org,
        epoch,
      ),
    );
    await run('DELETE FROM audit_events WHERE id = $1', forged);
    expect(findings).toMatchObject([{ fault: 'inserted', id: forged, index: undefined }]);
  });

  /** Creates an organization with five events in one epoch and one event in the next epoch. */
  async function overTwoEpochs() {
    const { org, ids } = await seal.organization(EVENTS);
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    await seal.seal();
    const witness = await seal.checkpoints(org);
    const whole = await seal.export(org);
    expect(seal.check(whole, witness).findings).toEqual([]);
    return { org, ids, witness, ended: witness[0]?.epoch, whole };
  }

  it('a changed row whose whole tree is hidden from the export', async () => {
    const { org, ids, witness, ended } = await overTwoEpochs();
    await run(`UPDATE audit_events SET details = '{"forged": true}' WHERE id = $1`, ids[THIRD]);
    await run('UPDATE audit_trees SET signed_size = 0 WHERE tree = $1 AND epoch = $2', org, ended);
    const lines = await seal.export(org);
    const missing = { fault: 'missing', epoch: ended };
    expect(seal.check(lines, witness).findings).toMatchObject([missing]);
    // The checkpoints of the later epoch suffice, because its first leaf names the last checkpoint
    // of the earlier one.
    const later = witness.filter(({ epoch }) => epoch !== ended);
    expect(seal.check(lines, later).findings).toMatchObject([missing]);
  });

  it('a newest tree that is hidden from the export', async () => {
    const { org, witness } = await overTwoEpochs();
    const epoch = witness.at(-1)?.epoch;
    await run('UPDATE audit_trees SET signed_size = 0 WHERE tree = $1 AND epoch = $2', org, epoch);
    const { findings } = seal.check(await seal.export(org), witness);
    await run('UPDATE audit_trees SET signed_size = size WHERE tree = $1', org);
    expect(findings).toMatchObject([{ fault: 'missing', epoch }]);
  });

  it('nothing of an earlier epoch, if the export was asked to begin after it', async () => {
    const { witness, whole, ended } = await overTwoEpochs();
    const epoch = witness.at(-1)?.epoch ?? '';
    const at = whole.findIndex((line) => line.includes(`"epoch":"${epoch}"`));
    expect(seal.check(whole.slice(at), witness).findings).toMatchObject([
      { fault: 'missing', epoch: ended },
    ]);
    const from = { epoch, index: 0 };
    expect(seal.check(whole.slice(at), witness, { from }).findings).toEqual([]);
  });

  it('leaves that are hidden at the beginning of a later epoch', async () => {
    const { org, witness, whole } = await overTwoEpochs();
    const epoch = witness.at(-1)?.epoch ?? '';
    const at = whole.findIndex((line) => line.includes(`"epoch":"${epoch}"`));
    const rest = await seal.export(org, { epoch, index: 1 });
    expect(rest.join()).toContain('"row":');
    expect(seal.check([...whole.slice(0, at), ...rest], witness).findings).toMatchObject([
      { fault: 'missing', epoch, index: 0, detail: expect.stringContaining('leaves 0 to 0') },
    ]);
  });

  it('leaves that are missing at the beginning of a part that was asked for', async () => {
    const { org, witness, ended = '' } = await overTwoEpochs();
    const part = await seal.export(org, { epoch: ended, index: THIRD });
    const check = (index: number) => seal.check(part, witness, { from: { epoch: ended, index } });
    expect(check(THIRD).findings).toEqual([]);
    expect(check(THIRD - 1).findings).toMatchObject([
      { fault: 'missing', epoch: ended, index: THIRD - 1 },
    ]);
  });

  it('nothing of an epoch after whose last leaf the export was asked to begin', async () => {
    const { org, witness, ended = '' } = await overTwoEpochs();
    const part = await seal.export(org, { epoch: ended, index: EVENTS });
    const check = (index: number) => seal.check(part, witness, { from: { epoch: ended, index } });
    expect(check(EVENTS).findings).toEqual([]);
    expect(check(EVENTS - 1).findings).toMatchObject([{ fault: 'missing', epoch: ended }]);
  });

  it.each([
    ['text that is no hash', ['eA==']],
    ['a hash too many', [Buffer.alloc(32).toString('base64')]],
  ])(
    'nothing: refuses a line of a tree with %s, beside which a forged row was not found',
    async (_, range) => {
      const { witness, ids, whole } = await overTwoEpochs();
      const [first = ''] = whole;
      const forged = whole
        .map((line) => (line.includes(ids[THIRD] ?? '') ? withOtherRow(line) : line))
        .filter((line) => !/^\{"size":\d,/.test(line) || line.startsWith(`{"size":${EVENTS},`));
      expect(seal.check(forged, witness).counts.faults).toBe(1);
      forged[0] = JSON.stringify({ ...(JSON.parse(first) as object), range });
      expect(() => seal.check(forged, witness)).toThrow('not a line of a sealed export');
    },
  );

  it.each([
    [
      'a leaf behind its last checkpoint',
      (lines: string[], at: number) =>
        lines.splice(at, 0, lines[at - 1]?.replace(/\d+/, String(EVENTS)) ?? ''),
    ],
    [
      'a line of another tree behind it',
      (lines: string[], at: number) => lines.splice(at, 0, treeLine(DEPLOYMENT, '1', 0, [])),
    ],
    [
      'lines that begin again behind it',
      (lines: string[], at: number, epoch: string, right: readonly string[]) =>
        lines.splice(
          at,
          0,
          treeLine(DEPLOYMENT, '1', 0, []),
          treeLine(treeOf(lines), epoch, EVENTS, right),
        ),
    ],
  ])('a forged row of an epoch of which no checkpoint is known, with %s', async (_, hide) => {
    const { witness, ids, whole, ended = '' } = await overTwoEpochs();
    const later = witness.filter(({ epoch }) => epoch !== ended);
    expect(seal.check(whole, later).findings).toEqual([]);
    const right = whole.findLast((line) => line.startsWith(`{"size":${EVENTS},`)) ?? '{}';
    const { range = [] } = JSON.parse(right) as { range?: string[] };
    const forged = whole
      .filter((line) => !line.startsWith('{"size":'))
      .map((line) => (line.includes(ids[THIRD] ?? '') ? withOtherRow(line) : line));
    hide(
      forged,
      forged.findLastIndex((line) => line.startsWith('{"tree":')),
      ended,
      range,
    );
    expect(seal.check(forged, later).counts.faults).toBeGreaterThan(0);
  });

  it('a history that was made again in a new epoch, without a trace of the earlier one', async () => {
    const { org, ids, witness } = await overTwoEpochs();
    await run(`UPDATE audit_events SET details = '{"forged": true}' WHERE id = $1`, ids[THIRD]);
    for (const table of ['audit_checkpoints', 'audit_nodes', 'audit_leaves', 'audit_trees']) {
      await run(`DELETE FROM ${table} WHERE tree = $1`, org);
    }
    await endEpoch(dataSource);
    await seal.seal();
    const all = [...witness, ...(await seal.checkpoints(org))];
    const faults = seal.check(await seal.export(org), all).findings.map(({ fault }) => fault);
    expect(faults).toEqual(['contradiction', 'missing', 'missing']);
  });
});
