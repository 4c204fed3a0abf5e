import { setTimeout as delay } from 'node:timers/promises';
import { FailoverWorld } from '../failover/failover-world.js';
import { brokenSince } from './acknowledged-checks.js';
import { startLoad } from './fault-scene.js';
import { tallyOf, tellWrong } from './fault-suite.js';

/** The milliseconds between two kills. */
const EVERY = 10_000;

/** The number of people who request certificates, for each replica. */
const PEOPLE = 2;

/**
 * Sends requests to replicas, and kills and restarts the oldest replica every 10 seconds. Then
 * compares the responses with the database.
 *
 * @param tell gets a text about each wrong response, and equal texts only once
 */
export async function runKills(
  replicas: number,
  milliseconds: number,
  tell: (text: string) => void,
) {
  const world = await FailoverWorld.start({ people: 0, replicas, isChecked: true });
  try {
    const { load, application } = await startLoad(world, PEOPLE * replicas);
    const { service, cluster } = world;
    const began = performance.now();
    const starts: Promise<void>[] = [];
    while (performance.now() < began + milliseconds) {
      const next = delay(EVERY);
      while (service.ports.length < 2) await delay(20); // one replica must stay
      const number = await service.killReplica();
      starts.push(service.startReplica(number));
      await next;
    }
    await Promise.all(starts);
    await load.untilEachSucceeded(2);
    await load.stop();
    const broken = await brokenSince(
      { load, application, leader: cluster.primary, service },
      began,
    );
    tellWrong(load.answers, tell);
    return {
      replicas,
      minutes: Math.round(milliseconds / 6000) / 10,
      kills: starts.length,
      ...tallyOf(load.answers),
      certificates: load.ledger.answered.length,
      users: load.users.size,
      tokens: load.tokens.size,
      ...broken,
    };
  } finally {
    await world.close();
  }
}
