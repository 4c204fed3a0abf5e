import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from './faults.js';
import type { FaultScene } from './fault-scene.js';
import type { Kind, LoadAnswer } from './mixed-load.js';
import type { PatroniNode } from './patroni-node.js';

/** The effects of one fault: a row of the table that the test prints. */
export interface FaultRow {
  readonly fault: string;
  /** The seconds from the beginning of the fault to its end. */
  readonly 'lasted s': number;
  /** The longest time in seconds between two successful requests of one sender. */
  readonly 'outage s': number;
  /**
   * The seconds until another node was the leader and a COMMIT on it returned; empty for a fault
   * that moves no leader.
   */
  readonly 'of Patroni s': number | '';
  readonly answers: number;
  /** The number of responses with status 503 that say when to try again. */
  readonly 'busy 503': number;
  /** The number of requests that no replica answered. */
  readonly 'no answer': number;
  /** The number of responses that are neither a success nor a 503 that says when to try again. */
  readonly wrong: number;
  readonly lost: number;
  readonly undone: number;
  readonly twice: number;
}

/** The number of successful requests of each kind that show that the service works. */
const SUCCESSES = 3;

/**
 * The milliseconds without a fault before the next one begins. A standby that has come back asks
 * the leader for its timeline. If the leader is cut off before it answers, each round of the
 * standby takes 3 seconds, and that would be a second fault.
 */
const SETTLES = 3000;

/** The answers of this many milliseconds before a fault also count. */
const BEFORE = 1000;

/**
 * Causes a fault under load, ends it, and waits until the cluster is whole again. Then it compares
 * the responses of that time with the database.
 *
 * @param tell gets a text about each wrong response, and equal texts only once
 */
export async function runFault(
  scene: FaultScene,
  fault: Fault,
  tell: (text: string) => void,
): Promise<FaultRow> {
  const { cluster, load } = scene;
  await cluster.untilWhole();
  await load.untilEachSucceeded(SUCCESSES);
  await delay(SETTLES);
  const began = performance.now();
  const old = cluster.primary;
  const end = await fault.begin(scene);
  const commits = fault.movesLeader === true ? untilCommits(scene, old) : undefined;
  await delay(fault.lasts);
  await end?.();
  const ended = performance.now();
  await cluster.untilWhole();
  await load.untilEachSucceeded(SUCCESSES);
  const answers = load.answers.filter(({ at }) => at >= began - BEFORE);
  const broken = await scene.brokenSince(began - BEFORE);
  const tellOf = (text: string) => tell(`${fault.name}: ${text}`);
  tellWrong(answers, tellOf);
  if (fault.endsReplica !== true) tellUnanswered(answers, scene.world.service.troubles(), tellOf);
  return {
    fault: fault.name,
    'lasted s': seconds(ended - began),
    'outage s': seconds(outageOf(answers)),
    'of Patroni s': commits === undefined ? '' : seconds((await commits) - began),
    ...tallyOf(answers),
    ...broken,
  };
}

/** Counts responses by their result. The names are columns of the table. */
export function tallyOf(answers: readonly LoadAnswer[]) {
  return {
    answers: answers.length,
    'busy 503': answers.filter(({ status, saysWhen }) => status === 503 && saysWhen).length,
    'no answer': answers.filter(({ status }) => status === 0).length,
    wrong: answers.filter(isWrong).length,
  };
}

/** Calls `tell` with a text about each wrong response, and with equal texts only once. */
export function tellWrong(answers: readonly LoadAnswer[], tell: (text: string) => void): void {
  for (const text of new Set(answers.filter(isWrong).map(textOf))) tell(text);
}

/**
 * Calls `tell` with texts about the requests without a response, and with texts that may explain
 * them. If every request has a response, it does nothing.
 */
function tellUnanswered(
  answers: readonly LoadAnswer[],
  troubles: readonly string[],
  tell: (text: string) => void,
): void {
  const unanswered = answers.filter(({ status }) => status === 0);
  if (unanswered.length === 0) return;
  const causes = Map.groupBy(unanswered, textOf);
  for (const [text, all] of causes) tell(`${all.length} times without an answer: ${text}`);
  for (const text of troubles) tell(text);
}

/**
 * Returns the results in a row that break the guarantees of the synchronous mode, each as a text.
 */
export function violationsOf(row: FaultRow, fault: Fault, mostSeconds: number): string[] {
  const counts = (['wrong', 'lost', 'undone', 'twice'] as const)
    .filter((name) => row[name] > 0)
    .map((name) => `${row[name]} ${name}`);
  if (row['no answer'] > 0 && fault.endsReplica !== true)
    counts.push(`${row['no answer']} without an answer`);
  if (row['outage s'] > mostSeconds + (fault.mayAdd ?? 0))
    counts.push(`an outage of ${row['outage s']} s`);
  return counts.map((text) => `${fault.name}: ${text}`);
}

const seconds = (milliseconds: number) => Math.round(milliseconds / 100) / 10;

/**
 * Waits until another node than the old leader commits. Returns that time by `performance.now()`.
 */
async function untilCommits({ cluster }: FaultScene, old: PatroniNode): Promise<number> {
  for (;;) {
    const leader = await cluster.leader();
    if (leader !== old) {
      // This statement commits. In synchronous mode it returns only after a standby has the commit.
      const text = "SELECT pg_logical_emit_message(true, 'test', 'a commit')";
      if (await leader.query(text).then(Boolean, () => false)) return performance.now();
    }
    await delay(50);
  }
}

function isWrong({ isDone, status, saysWhen }: LoadAnswer): boolean {
  return !isDone && status !== 0 && !(status === 503 && saysWhen);
}

const textOf = ({ kind, status, text }: LoadAnswer) => `${kind} ${status} ${text.slice(0, 200)}`;

/** The kinds of requests of each sender in the load. A sender sends its kinds in turn. */
const SENDERS: readonly (readonly Kind[])[] = [
  ['certificate'],
  ['token', 'revocation'],
  ['create', 'delete'],
];

/** Returns the longest time in milliseconds between two successes of one sender. */
function outageOf(answers: readonly LoadAnswer[]): number {
  const gaps = SENDERS.flatMap((kinds) => {
    const times = answers
      .filter(({ kind, isDone }) => isDone && kinds.includes(kind))
      .map(({ at }) => at);
    return times.slice(1).map((at, index) => at - (times[index] ?? at));
  });
  return Math.max(0, ...gaps);
}
