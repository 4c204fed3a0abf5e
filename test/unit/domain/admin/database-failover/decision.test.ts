import { describe, expect, it } from 'vitest';
import {
  decide,
  type FailoverDecision,
  type FailoverSetting,
  type ReplicaReport,
  type Reports,
} from '#domain/admin/database-failover/decision.js';
import type { DatabaseIdentity } from '#platform/database/identity/database-identity.js';

const BEFORE: DatabaseIdentity = {
  startedAt: '1763800000000000',
  systemIdentifier: '7300000000000000001',
  databaseOid: '16384',
  timeline: '00000001',
};
const LATER = '1763800099000000';

const SERVERS = {
  restart: { ...BEFORE, startedAt: LATER },
  promotion: { ...BEFORE, startedAt: LATER, timeline: '00000002' },
  'another cluster': { ...BEFORE, startedAt: LATER, systemIdentifier: '7300000000000000002' },
  'another database': { ...BEFORE, databaseOid: '16999' },
  'a role that reads less': {
    ...BEFORE,
    startedAt: LATER,
    systemIdentifier: null,
    timeline: null,
  },
} as const satisfies Record<string, DatabaseIdentity>;

const REPORTS = {
  none: [],
  new: [report({ isWitness: false })],
  witness: [report({}), report({ isWitness: false })],
  proof: [report({}), report({ isLost: true })],
} as const satisfies Record<string, readonly ReplicaReport[]>;

function report(fields: Partial<ReplicaReport>): ReplicaReport {
  const none = { isWitness: true, isLost: false, lacksHeartbeat: false, highestSerial: undefined };
  return { ...none, ...fields };
}

type Row = readonly [
  server: keyof typeof SERVERS,
  reports: keyof typeof REPORTS,
  setting: Exclude<FailoverSetting, undefined> | 'unset',
  ends: 'nothing' | 'everything',
  serials: FailoverDecision['serials'],
];

const TABLE: readonly Row[] = [
  ['restart', 'none', 'unset', 'nothing', 'same'],
  ['restart', 'new', 'asynchronous', 'nothing', 'same'],
  ['restart', 'witness', 'unset', 'nothing', 'same'],
  ['restart', 'witness', 'asynchronous', 'nothing', 'same'],
  ['restart', 'proof', 'unset', 'everything', 'first'],
  ['restart', 'proof', 'synchronous', 'everything', 'first'],
  ['promotion', 'none', 'unset', 'everything', 'first'],
  ['promotion', 'new', 'unset', 'everything', 'first'],
  ['promotion', 'new', 'synchronous', 'nothing', 'first'],
  ['promotion', 'new', 'asynchronous', 'everything', 'first'],
  ['promotion', 'witness', 'unset', 'nothing', 'unrecorded'],
  ['promotion', 'witness', 'synchronous', 'nothing', 'unrecorded'],
  ['promotion', 'witness', 'asynchronous', 'everything', 'first'],
  ['promotion', 'proof', 'unset', 'everything', 'first'],
  ['promotion', 'proof', 'synchronous', 'everything', 'first'],
  ['another cluster', 'new', 'unset', 'everything', 'first'],
  ['another cluster', 'witness', 'unset', 'nothing', 'unrecorded'],
  ['another database', 'new', 'unset', 'everything', 'first'],
  ['another database', 'new', 'synchronous', 'nothing', 'first'],
  ['another database', 'witness', 'unset', 'nothing', 'unrecorded'],
  ['a role that reads less', 'new', 'unset', 'nothing', 'same'],
  ['a role that reads less', 'proof', 'unset', 'everything', 'first'],
];

describe('what a change of the server means', () => {
  it.each(TABLE)('%s, reports: %s, %s: %s ends, serials %s', (server, reports, setting, ...is) => {
    const asked = setting === 'unset' ? undefined : setting;
    const found = { all: REPORTS[reports], isComplete: true };
    const decision = decide(BEFORE, SERVERS[server], found, asked);
    expect([decision.endsEverything ? 'everything' : 'nothing', decision.serials]).toEqual(is);
  });

  it('passes on the highest serial that a process remembers', () => {
    const all = [9n, 30n, undefined, 12n].map((highestSerial) => report({ highestSerial }));
    const of = (reports: Reports) => decide(BEFORE, SERVERS.promotion, reports, undefined);
    expect(of({ all, isComplete: true }).highestSerial).toBe(30n);
    expect(of({ all: [], isComplete: true }).highestSerial).toBeUndefined();
  });

  it('counts as a loss if the last moment is missing and a process that ran then is silent', () => {
    const all = [report({ lacksHeartbeat: true }), report({})];
    const ends = (server: keyof typeof SERVERS, isComplete: boolean, setting?: FailoverSetting) => {
      const decision = decide(BEFORE, SERVERS[server], { all, isComplete }, setting);
      return [decision.endsEverything, decision.hasWitness, decision.serials];
    };
    expect(ends('promotion', false)).toEqual([true, false, 'first']);
    expect(ends('promotion', false, 'synchronous')).toEqual([false, false, 'first']);
    expect(ends('promotion', true)).toEqual([false, true, 'unrecorded']);
    expect(ends('restart', false)).toEqual([true, false, 'first']);
    expect(ends('restart', false, 'synchronous')).toEqual([true, false, 'first']);
    expect(ends('restart', true)).toEqual([false, true, 'same']);
    const silentAlone = { all: [report({})], isComplete: false };
    expect(decide(BEFORE, SERVERS.promotion, silentAlone, undefined).endsEverything).toBe(false);
    expect(decide(BEFORE, SERVERS.restart, silentAlone, undefined).endsEverything).toBe(false);
  });
});
