import { DataSource } from 'typeorm';
import { OutboundHttp } from '../../src/platform/outbound/outbound-http.service.js';
import { startTestApp } from './app.js';
import type { ReplicaAnswer, ReplicaArgument } from './replica.js';

// A script for runScript: a replica that kills itself (SIGKILL) at one step of sending logout
// notices or signals to applications.
const argument: DyingArgument = JSON.parse(process.argv[2] ?? '');

/**
 * Matches the statement after which a replica kills itself, for those steps that end with a
 * statement.
 */
const STATEMENTS: Readonly<Partial<Record<DyingStep, RegExp>>> = {
  settled: /DELETE FROM (logout_notices|signal_events) WHERE id|last_taken_at = now\(\)/,
  polled: /FROM signal_streams s JOIN signal_events e .* s\.method = 'poll' AND s\.status/,
  acknowledged: /DELETE FROM signal_events WHERE stream_id .* jti = ANY/,
};

/** Kills this process. The promise never settles, so that no code runs after the call. */
function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
}

const fetch = Reflect.get(OutboundHttp.prototype, 'fetch');
if (argument.step === 'taken') OutboundHttp.prototype.fetch = die;
if (argument.step === 'answered') {
  OutboundHttp.prototype.fetch = async function (...parameters) {
    await fetch.apply(this, parameters);
    return die();
  };
}
const create = Reflect.get(DataSource.prototype, 'createQueryRunner');
DataSource.prototype.createQueryRunner = function (...parameters) {
  const runner = create.apply(this, parameters);
  const query = runner.query.bind(runner) as (...all: unknown[]) => Promise<never>;
  let isWritten = false;
  // The statement is either a text or an object of `pg` with a name and a text. As JSON, both can
  // be searched.
  runner.query = async (statement: unknown, ...values: unknown[]) => {
    const text = JSON.stringify(statement);
    isWritten ||= argument.step === 'written' && text.includes('end_signals(');
    if (isWritten && text.includes('COMMIT')) return die();
    const result = await query(statement, ...values);
    return STATEMENTS[argument.step]?.test(text) ? die() : result;
  };
  return runner;
};
const app = await startTestApp(argument);
const answer: ReplicaAnswer = { baseUrl: app.baseUrl };
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.stdin.on('end', () => void app.close()).resume();

/**
 * The step of sending logout notices or signals at which the process is killed:
 * - `written`: the transaction that ends access has written rows into the queue, and not committed.
 * - `taken`: the sender has taken a row from the queue.
 * - `connected`: the sender has a connection to the receiver. Here the test kills the process.
 * - `answered`: the sender has got the response.
 * - `settled`: the sender has deleted the row.
 * - `polled`: a poll of a receiver has read the rows.
 * - `acknowledged`: a poll has deleted the rows that the receiver acknowledged.
 */
export type DyingStep =
  'written' | 'taken' | 'connected' | 'answered' | 'settled' | 'polled' | 'acknowledged';

/** The argument of the script. */
export interface DyingArgument extends ReplicaArgument {
  readonly step: DyingStep;
}
