import { DataSource } from 'typeorm';
import { OutboundHttp } from '../../src/platform/outbound/outbound-http.service.js';
import { startTestApp } from './app.js';
import type { ReplicaAnswer, ReplicaArgument } from './replica.js';

// Run by runScript: a replica that kills itself (SIGKILL) at one step of sending logout notices or
// signals to applications.
const argument: DyingArgument = JSON.parse(process.argv[2] ?? '');

/** The statements after which a replica kills itself, by the step. */
const STATEMENTS: Readonly<Partial<Record<DyingStep, RegExp>>> = {
  settled: /DELETE FROM (logout_notices|signal_events) WHERE id|last_taken_at = now\(\)/,
  polled: /FROM signal_streams s JOIN signal_events e .* s\.method = 'poll' AND s\.status/,
  acknowledged: /DELETE FROM signal_events WHERE stream_id .* jti = ANY/,
};

/** Ends the process at once. The promise never settles, so that nothing runs after it. */
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
  // The statement is an object of `pg` with a name and a text, or a text.
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
 * A step of sending logout notices or signals to applications. `written`: a transaction that ends
 * access has written the rows of the queue. `taken`: a sender has taken a row. `connected`: it has
 * a connection to the receiver; here the test kills the process. `answered`: it has got the answer.
 * `settled`: it has deleted the row. `polled`: a poll has read the rows. `acknowledged`: a poll has
 * deleted the rows that the receiver acknowledged.
 */
export type DyingStep =
  'written' | 'taken' | 'connected' | 'answered' | 'settled' | 'polled' | 'acknowledged';

/** The argument of the script. */
export interface DyingArgument extends ReplicaArgument {
  readonly step: DyingStep;
}
