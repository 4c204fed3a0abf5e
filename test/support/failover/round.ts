import { setTimeout as delay } from 'node:timers/promises';
import type { FailoverWorld } from './failover-world.js';
import { isDoneOn, LEAVINGS, type Leaving } from './leavings.js';
import { tried } from './round-checks.js';
import type { Person } from './person.js';

/** What happens to the database, and what is lost with it. */
export interface Scenario {
  readonly name: string;
  /** Changes the server, and ends when a primary takes writes. */
  readonly change: (world: FailoverWorld) => Promise<void>;
  /** True if the commits of the last seconds are lost. */
  readonly isLossy: boolean;
  /** How long replication is held back at least before the change, in milliseconds. */
  readonly lag?: number;
  /** True if a replica dies as well: what it remembers of leavers is gone. */
  readonly losesMemory?: boolean;
  /**
   * During the lag the oldest replica serves alone, so that no other one remembers what was lost.
   */
  readonly isByOldest?: boolean;
  /** The load pauses during the change, so that a killed primary loses nothing. */
  readonly isQuiet?: boolean;
  /** The acts whose loss is tried; every one by default. */
  readonly leavings?: readonly Leaving[];
}

/** A person who left, or lost a key, and the act. */
export interface Leaver {
  readonly person: Person;
  readonly leaving: Leaving;
}

/** What happened in a round, for the checks. */
export interface Happened {
  readonly scenario: Scenario;
  /**
   * The time from which commits were held back, and that when a primary took writes again, of
   * `performance.now()`.
   */
  readonly began: number;
  readonly changed: number;
  readonly leavers: readonly Leaver[];
  /** A person who stays, with a session from before the change. */
  readonly stays: Person;
  /** How many people of the load had to log in again before the change. */
  readonly logins: number;
  /** How many pairs of equal serials there were before the round. */
  readonly equalSerials: number;
}

/** What a round has shown. */
export interface RoundReport {
  readonly scenario: string;
  /** The certificates that were answered from the beginning of the lag to the change. */
  readonly answered: number;
  /** Those of them without a row afterwards. */
  readonly lost: number;
  readonly equalSerials: number;
  /**
   * The leavers whose answered act the standby did not have, and those of them that are in effect
   * afterwards.
   */
  readonly undone: number;
  readonly endedAgain: number;
  /** The longest time without a certificate, in milliseconds. */
  readonly pause: number;
  /**
   * The answers other than certificates to the people of the load, and how many there were of each.
   */
  readonly refusals: string;
  /** Sentences, one for each violation. */
  readonly violations: readonly string[];
}

/**
 * Runs one round: people leave, the database changes, and everything that was answered before is
 * tried.
 */
export async function runRound(world: FailoverWorld, scenario: Scenario): Promise<RoundReport> {
  const { load, ledger, cluster, service } = world;
  const equalSerials = ledger.equalSerials.length;
  const stays = await world.newPerson();
  const leavers = await newLeavers(world, scenario.leavings ?? LEAVINGS);
  await load.untilEachGot(1);
  const logins = load.logins;
  load.refusals.clear();

  service.serveByOldest(scenario.isByOldest === true);
  await load.untilEachGot(1); // no other replica has a request under way
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

/** Counts the leavers whose act a standby does not have. */
async function undoneOf(world: FailoverWorld, leavers: readonly Leaver[]): Promise<number> {
  const [standby] = world.cluster.standbys;
  if (!standby) throw new Error('there is no standby');
  let count = 0;
  for (const { leaving, person } of leavers)
    if (!(await isDoneOn(standby, leaving, person))) count += 1;
  return count;
}
