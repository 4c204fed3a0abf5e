import { setTimeout as delay } from 'node:timers/promises';
import type { ReplicatedPostgres } from '../replicated-postgres.js';
import type { FailoverWorld, WorldCluster } from './failover-world.js';
import { isDoneOn, LEAVINGS, type Leaving } from './leavings.js';
import { tried } from './round-checks.js';
import type { Person } from './person.js';

/** A scenario of a failover test: how the database server changes, and what is lost by it. */
export interface Scenario<Cluster extends WorldCluster = ReplicatedPostgres> {
  readonly name: string;
  /** Changes the database server. Resolves when a primary accepts writes again. */
  readonly change: (world: FailoverWorld<Cluster>) => Promise<void>;
  /** Runs before replication is stopped, for scenarios that must wait for something. */
  readonly beforeLag?: (world: FailoverWorld<Cluster>) => Promise<void>;
  /** True if the change loses the commits of the last seconds. */
  readonly isLossy: boolean;
  /** The shortest time in milliseconds between the stop of replication and the change. */
  readonly lag?: number;
  /**
   * True if a replica of the service also ends. The other replicas do not remember the ended access
   * that only this replica had handled.
   */
  readonly losesMemory?: boolean;
  /**
   * True if only the oldest replica serves while replication is stopped, so that no other replica
   * remembers the commits that are lost.
   */
  readonly isByOldest?: boolean;
  /**
   * True if the people send no requests during the change, so that a killed primary loses nothing.
   */
  readonly isQuiet?: boolean;
  /** The requests of the round that end access; by default {@link LEAVINGS}. */
  readonly leavings?: readonly Leaving[];
}

/** A person, and the request that ended the access of the person or of one of the person's keys. */
export interface Leaver {
  readonly person: Person;
  readonly leaving: Leaving;
}

/** The events of one round, which the checks need. */
export interface Happened {
  readonly scenario: Omit<Scenario, 'change' | 'beforeLag'>;
  /**
   * The times, by `performance.now()`, at which replication was stopped (`began`) and at which a
   * primary accepted writes again (`changed`).
   */
  readonly began: number;
  readonly changed: number;
  readonly leavers: readonly Leaver[];
  /** A person who keeps access, with a session from before the change. */
  readonly stays: Person;
  /** The number of times that people had to log in again before the round. */
  readonly logins: number;
  /** The number of equal serials that were found before this round. */
  readonly equalSerials: number;
}

/** The results of one round of the test. */
export interface RoundReport {
  readonly scenario: string;
  /**
   * The number of certificates that were returned between the stop of replication and the change.
   */
  readonly answered: number;
  /** The number of these certificates for which the new primary has no row. */
  readonly lost: number;
  readonly equalSerials: number;
  /**
   * Numbers of people. `undone`: their ended access had not reached the standby before the change.
   * `endedAgain`: their access is ended at the new primary after the round.
   */
  readonly undone: number;
  readonly endedAgain: number;
  /** The longest time in milliseconds between two returned certificates. */
  readonly pause: number;
  /** The kinds of answers other than certificates that the people got, with the number of each. */
  readonly refusals: string;
  /** The violations that the checks found, each as a sentence. */
  readonly violations: readonly string[];
}

/**
 * Runs one round: ends the access of some people, changes the database server, and then tries
 * everything that the service returned before.
 */
export async function runRound<Cluster extends WorldCluster>(
  world: FailoverWorld<Cluster>,
  scenario: Scenario<Cluster>,
): Promise<RoundReport> {
  const { load, ledger, cluster, service } = world;
  const equalSerials = ledger.equalSerials.length;
  const stays = await world.newPerson();
  const leavers = await newLeavers(world, scenario.leavings ?? LEAVINGS);
  await load.untilEachGot(1);
  const logins = load.logins;
  load.refusals.clear();

  service.serveByOldest(scenario.isByOldest === true);
  // When each person has got one more certificate, the replicas that no longer serve have finished
  // their requests.
  await load.untilEachGot(1);
  await scenario.beforeLag?.(world);
  await cluster.caughtUp();
  if (scenario.isLossy) cluster.holdReplication();
  const began = performance.now();
  for (const { leaving, person } of leavers) await leave(world, leaving, person);
  await load.untilEachGot(2);
  while (performance.now() < began + (scenario.lag ?? 0)) await delay(20);
  if (scenario.isQuiet === true) {
    await load.pause();
    await cluster.caughtUp();
  }
  const undone = scenario.isLossy ? await undoneOf(world, leavers) : 0;
  await scenario.change(world);
  const changed = performance.now();
  load.resume();
  await load.untilEachGot(2);
  const happened = { scenario, began, changed, leavers, stays, logins, equalSerials };
  return { ...(await tried(world, happened)), undone };
}

async function newLeavers(world: FailoverWorld, leavings: readonly Leaving[]): Promise<Leaver[]> {
  const leavers: Leaver[] = [];
  for (const leaving of leavings) {
    const person = await world.newPerson();
    await leaving.prepare?.(world, person);
    leavers.push({ leaving, person });
  }
  return leavers;
}

async function leave(world: FailoverWorld, leaving: Leaving, person: Person): Promise<void> {
  const { status, text } = await leaving.act(world, person);
  if (status < 200 || status > 299)
    throw new Error(`${leaving.name} was answered ${status}: ${text.slice(0, 300)}`);
}

/** Counts the people whose access is not ended at a standby, because replication was stopped. */
async function undoneOf(world: FailoverWorld, leavers: readonly Leaver[]): Promise<number> {
  const [standby] = world.cluster.standbys;
  if (!standby) throw new Error('there is no standby');
  let count = 0;
  for (const { leaving, person } of leavers)
    if (!(await isDoneOn(standby, leaving, person))) count += 1;
  return count;
}
