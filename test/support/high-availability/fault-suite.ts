import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from './faults.js';
import type { FaultScene } from './fault-scene.js';
import type { Kind, LoadAnswer } from './mixed-load.js';
import type { PatroniNode } from './patroni-node.js';

/** The effects of one fault, as a row of the printed table. */
export interface FaultRow {
  readonly fault: string;
  /** The seconds from the beginning of the fault to its end. */
  readonly 'lasted s': number;
  /** The longest time in seconds in which no request of one sender succeeded. */
  readonly 'outage s': number;
  /**
   * The seconds until another node was the leader and a COMMIT on it returned; empty for a fault
   * that moves no leader.
   */
  readonly 'of Patroni s': number | '';
  readonly answers: number;
  /** The answers with status 503 that say when to try again. */
  readonly 'busy 503': number;
  /** The requests that no replica answered. */
  readonly 'no answer': number;
  /** The answers that are neither a success nor a 503 that says when to try again. */
  readonly wrong: number;
  readonly lost: number;
  readonly undone: number;
  readonly twice: number;
}

/** The number of successful requests of each kind that show that the service works. */
const SUCCESSES = 3;

/**
 * The milliseconds between two faults for which the cluster stays whole. A standby that has come
 * back asks the leader for its time line in its next rounds. If the leader is cut off before it
 * answers, each round of this standby takes 3 seconds, which is a second fault.
 */
const SETTLES = 3000;

/** The answers of this many milliseconds before a fault also count. */
const BEFORE = 1000;

/**
 * Causes a fault under load, ends it, and waits until the cluster is whole again. Then it compares
 * everything that was acknowledged meanwhile with the database.
 *
 * @param tell is called with a text about each wrong answer; equal texts come once
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

/** Counts answers by their result, under the names of the printed table. */
export function tallyOf(answers: readonly LoadAnswer[]) {
  return {
    answers: answers.length,
    'busy 503': answers.filter(({ status, saysWhen }) => status === 503 && saysWhen).length,
    'no answer': answers.filter(({ status }) => status === 0).length,
    wrong: answers.filter(isWrong).length,
  };
}

/** Calls a function with a text about each wrong answer. Equal texts come once. */
export function tellWrong(answers: readonly LoadAnswer[], tell: (text: string) => void): void {
  for (const text of new Set(answers.filter(isWrong).map(textOf))) tell(text);
}

/**
 * Calls a function with a text about the requests that no replica has answered, and the texts that
 * may explain them. It calls the function never if each request has an answer.
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
 * Lists the results in a row that break the promises of the synchronous mode, each as a sentence.
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
 * Waits until another node than the old leader commits, and returns the time by
 * `performance.now()`.
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

/** The kinds of requests that each sender of the load sends in turn. */
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
