import { DataSource } from 'typeorm';
import { OutboundHttp } from '../../src/platform/outbound/outbound-http.service.js';
import { startTestApp } from './app.js';
import type { ReplicaAnswer, ReplicaArgument } from './replica.js';

// Run by runScript: a replica that kills itself (SIGKILL) at one step of sending a notice.
const argument: DyingArgument = JSON.parse(process.argv[2] ?? '');

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
if (argument.step === 'settled') {
  const create = Reflect.get(DataSource.prototype, 'createQueryRunner');
  DataSource.prototype.createQueryRunner = function (...parameters) {
    const runner = create.apply(this, parameters);
    const query = runner.query.bind(runner) as (...all: unknown[]) => Promise<never>;
    // The service passes a named statement of `pg`.
    runner.query = async (statement: unknown, ...values: unknown[]) => {
      const result = await query(statement, ...values);
      const isEnd = JSON.stringify(statement).includes('DELETE FROM logout_notices WHERE id');
      return isEnd ? die() : result;
    };
    return runner;
  };
}
const app = await startTestApp(argument);
const answer: ReplicaAnswer = { baseUrl: app.baseUrl };
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.stdin.on('end', () => void app.close()).resume();

/** The argument of the script. At `connected` the test kills the process. */
export interface DyingArgument extends ReplicaArgument {
  readonly step: 'taken' | 'connected' | 'answered' | 'settled';
}
