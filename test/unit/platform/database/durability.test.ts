import { describe, expect, it } from 'vitest';
import { durabilityWarnings, type DurabilitySettings } from '#platform/database/durability.js';

const SOUND: DurabilitySettings = {
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousCommit: 'on',
  synchronousStandbyNames: '',
  standbys: 0,
};
const SYNCHRONOUS = { synchronousStandbyNames: 'ANY 1 (b, c)', standbys: 2 };
const ASYNCHRONOUS = { standbys: 1 };

type Named = readonly (string | undefined)[];
const named = (settings: Partial<DurabilitySettings>): Record<string, Named> =>
  Object.fromEntries(
    ([undefined, 'synchronous', 'asynchronous'] as const).map((failover) => [
      failover ?? 'unset',
      durabilityWarnings({ ...SOUND, ...settings }, failover).map(
        (line) =>
          /^SVC_DATABASE_URL: (\w+) is .* \(docs\/operations\/databases\.md\)$/.exec(line)?.[1],
      ),
    ]),
  );

describe('the settings of PostgreSQL that decide which commits survive', () => {
  it('are sound by default, and with synchronous standbys', () => {
    expect(named(SYNCHRONOUS)).toEqual({ unset: [], synchronous: [], asynchronous: [] });
    expect(named({ ...SYNCHRONOUS, synchronousCommit: 'remote_apply' })['unset']).toEqual([]);
    expect(named({})).toMatchObject({ unset: [], asynchronous: [] });
  });

  it.each<[string, Partial<DurabilitySettings>]>([
    ['fsync', { fsync: 'off' }],
    ['full_page_writes', { fullPageWrites: 'off' }],
    ['synchronous_commit', { synchronousCommit: 'off' }],
  ])('%s is named, whatever the operator says of the standbys', (name, settings) => {
    const each = [name];
    const expected = { unset: each, synchronous: each, asynchronous: each };
    expect(named({ ...SYNCHRONOUS, ...settings })).toEqual(expected);
  });

  it.each<[string, Partial<DurabilitySettings>]>([
    ['synchronous_standby_names', ASYNCHRONOUS],
    ['synchronous_commit', { ...SYNCHRONOUS, synchronousCommit: 'local' }],
  ])('%s is named unless the operator knows of asynchronous standbys', (name, settings) => {
    expect(named(settings)).toEqual({ unset: [name], synchronous: [name], asynchronous: [] });
  });

  it('contradict an operator who says synchronous while no standby is named', () => {
    expect(named({})['synchronous']).toEqual(['synchronous_standby_names']);
  });
});
