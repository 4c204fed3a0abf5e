import { hostname, userInfo } from 'node:os';
import { Logger as NestLogger, type LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';
import type { MachineOperator } from '#domain/operator-access/operator.js';
import type { Environment } from '#platform/config/environment.js';

/** Returns the person at the machine. A container may run under a uid that has no name. */
export function operatorOf(environment: Environment): MachineOperator {
  const uid = process.getuid?.() ?? -1;
  return { name: nameOf(uid), uid, sudoUser: environment['SUDO_USER'], host: hostname() };
}

function nameOf(uid: number): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${uid}`;
  }
}

const drop = () => undefined;

/** Sends the warnings and errors of the domain to a logger, and drops its other lines: the command has its own results. */
export function redirectNestLog(logger: Logger): void {
  const through =
    (level: 'warn' | 'error') =>
    (message: unknown, ...rest: unknown[]) => {
      const context = rest.at(-1);
      logger[level]({ context: typeof context === 'string' ? context : '' }, String(message));
    };
  const service: LoggerService = {
    log: drop,
    debug: drop,
    verbose: drop,
    warn: through('warn'),
    error: through('error'),
  };
  NestLogger.overrideLogger(service);
}
