import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { FailoverWorld } from '../support/failover/failover-world.js';
import { runRound } from '../support/failover/round.js';
import { PROMOTION, RESTART, SWITCHOVER } from '../support/failover/scenarios.js';
import '../support/full-scale-only.js';
import { requires } from '../support/programs.js';
import type { ReplicatedPostgres } from '../support/replicated-postgres.js';
import { SCALE } from '../support/scale.js';
import { SSHD_PROGRAMS } from '../support/sshd.js';

/**
 * The promotions that one running service lives through. Only `npm run test:scale` tries a second
 * one.
 */
const ROUNDS = SCALE === 'full' ? ['first', 'second'] : ['first'];

const PLANNED = [
  ['restart', RESTART],
  ...(SCALE === 'full' ? [['planned switchover', SWITCHOVER] as const] : []),
] as const;

/**
 * Tests service, replicated PostgreSQL of Debian and sshd together. `npm run bench -- failover`
 * runs more rounds.
 */
requires('postgresql', ...SSHD_PROGRAMS).describe('a database that fails over', () => {
  let world: FailoverWorld<ReplicatedPostgres>;
  beforeAll(async () => {
    world = await FailoverWorld.start();
  });
  afterEach(() => world.cluster.rejoin());
  afterAll(() => world.close());

  it.each(ROUNDS)(
    'the %s promotion with lag: no serial twice, sshd refuses what was lost, leavers stay out',
    async () => {
      const report = await runRound(world, PROMOTION);
      expect(report).toMatchObject({ violations: [], equalSerials: 0, undone: 4, endedAgain: 4 });
      expect(report.lost).toBeGreaterThan(0);
    },
  );

  it.each(PLANNED)('a %s ends no session', async (_, scenario) => {
    const report = await runRound(world, { ...scenario, leavings: [] });
    expect(report).toMatchObject({ violations: [], lost: 0 });
  });
});
