import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { FailoverWorld } from '../support/failover/failover-world.js';
import { runRound } from '../support/failover/round.js';
import { PROMOTION, RESTART, SWITCHOVER } from '../support/failover/scenarios.js';
import { requires } from '../support/programs.js';
import { SSHD_PROGRAMS } from '../support/sshd.js';

/** Tests the whole chain on PostgreSQL of Debian: `npm run bench -- failover` runs more of it. */
requires('postgresql', ...SSHD_PROGRAMS).describe('a database that fails over', () => {
  let world: FailoverWorld;
  beforeAll(async () => {
    world = await FailoverWorld.start();
  });
  afterEach(() => world.cluster.rejoin());
  afterAll(() => world.close());

  it.each(['first', 'second'])(
    'the %s promotion with lag: no serial twice, sshd refuses what was lost, leavers stay out',
    async () => {
      const report = await runRound(world, PROMOTION);
      expect(report).toMatchObject({ violations: [], equalSerials: 0, undone: 4, endedAgain: 4 });
      expect(report.lost).toBeGreaterThan(0);
    },
  );

  it('a planned switchover ends no session', async () => {
    const report = await runRound(world, { ...SWITCHOVER, leavings: [] });
    expect(report).toMatchObject({ violations: [], lost: 0 });
  });

  it('a restart ends no session', async () => {
    const report = await runRound(world, { ...RESTART, leavings: [] });
    expect(report).toMatchObject({ violations: [], lost: 0 });
  });
});
