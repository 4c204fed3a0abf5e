import { setTimeout as delay } from 'node:timers/promises';
import type { Scenario } from './round.js';

/** The primary ends, and a standby that lacks the primary's last commits takes over. */
export const PROMOTION: Scenario = {
  name: 'promotion with lag',
  isLossy: true,
  change: async ({ cluster }) => {
    await cluster.killPrimary();
    await cluster.promote();
  },
};

/**
 * The primary ends, and a standby becomes the primary and ends too. Another standby that lacks the
 * last commits of both takes over.
 */
export const TWO_PROMOTIONS: Scenario = {
  name: 'two promotions inside one lag',
  isLossy: true,
  change: async ({ cluster, load }) => {
    await cluster.killPrimary();
    await cluster.promote();
    await load.untilEachGot(2);
    await cluster.killPrimary();
    await cluster.promote();
  },
};

/**
 * A replica of the service ends together with the primary. The replica that starts instead
 * remembers no commits.
 */
export const WITH_A_REPLICA: Scenario = {
  name: 'a replica dies with the primary',
  isLossy: true,
  losesMemory: true,
  change: async ({ cluster, service }) => {
    await Promise.all([cluster.killPrimary(), service.killReplica()]);
    await cluster.promote();
    await service.startReplica();
  },
};

/**
 * The only replica that served while replication was stopped ends together with the primary. So no
 * replica remembers the lost commits.
 */
export const SILENT_REPLICA: Scenario = {
  name: 'the only witness dies with the primary',
  isLossy: true,
  losesMemory: true,
  isByOldest: true,
  change: async (world) => {
    await Promise.all([world.cluster.killPrimary(), world.service.killReplica()]);
    world.service.serveByOldest(false);
    await world.cluster.promote();
    await world.service.startReplica();
  },
};

/** The primary ends after its standby has all commits. */
export const WITHOUT_LAG: Scenario = {
  name: 'promotion without lag',
  isLossy: false,
  isQuiet: true,
  change: PROMOTION.change,
};

/** The operator makes the standby the primary, as planned. */
export const SWITCHOVER: Scenario = {
  name: 'planned switchover',
  isLossy: false,
  change: ({ cluster }) => cluster.switchover(),
};

/** The operator restarts the primary. */
export const RESTART: Scenario = {
  name: 'restart',
  isLossy: false,
  change: ({ cluster }) => cluster.restart(),
};

/**
 * The primary crashes and recovers by itself. With `synchronous_commit=on` it then still has
 * everything that it has acknowledged.
 */
export const CRASH: Scenario = {
  name: 'crash and recovery',
  isLossy: false,
  change: ({ cluster }) => cluster.restart({ isKilled: true }),
};

/** The primary refuses writes for two seconds, and then accepts them again. */
export const READ_ONLY: Scenario = {
  name: 'read-only for 2 s',
  isLossy: false,
  change: async ({ cluster: { primary } }) => {
    await primary.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await primary.query('SELECT pg_reload_conf()');
    const end = performance.now() + 2000;
    while (performance.now() < end) await delay(20);
    await primary.query('ALTER SYSTEM RESET default_transaction_read_only');
    await primary.query('SELECT pg_reload_conf()');
  },
};
