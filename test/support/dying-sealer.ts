import { createPrivateKey } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { systemClock } from '#platform/clock/clock.js';
import { localSigner } from '#platform/crypto/signer.js';

// A script for runScript. It seals the audit log, and kills itself (SIGKILL) after one of its
// statements.
const argument: DyingSealerArgument = JSON.parse(process.argv[2] ?? '');

Logger.overrideLogger(false);
process.stdout.write(`${JSON.stringify({ isRunning: true })}\n`);
const dataSource = new DataSource({ type: 'postgres', url: argument.url });
await dataSource.initialize();
let statements = 0;
const create = Reflect.get(DataSource.prototype, 'createQueryRunner');
dataSource.createQueryRunner = function (...parameters) {
  const runner = create.apply(this, parameters);
  const query = runner.query.bind(runner) as (...all: unknown[]) => Promise<never>;
  runner.query = async (...all: unknown[]) => {
    const result = await query(...all);
    statements += 1;
    if (statements === argument.dieAfter) process.kill(process.pid, 'SIGKILL');
    return statements === argument.dieAfter ? new Promise<never>(() => {}) : result;
  };
  return runner;
};
const key = { name: argument.name, signer: localSigner(createPrivateKey(argument.key)) };
await new AuditSealer(dataSource, systemClock, key).seal();
await dataSource.destroy();

/**
 * The argument of the script. `name` and `key` are the name and the PEM of the seal's key. The
 * process kills itself after the statement number `dieAfter`, counted from 1.
 */
export interface DyingSealerArgument {
  readonly url: string;
  readonly name: string;
  readonly key: string;
  readonly dieAfter: number;
}
