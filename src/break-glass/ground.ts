import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { Logger as NestLogger, type LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';
import type { MachineOperator } from '#domain/admin/operator-access/operator.js';
import type { Config } from '#platform/config/config.js';
import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { terminalOf, type OperatorTerminal } from './terminal.js';

/** The login uid of a process that no login started, such as a daemon: -1 in 32 bits. */
const NO_LOGIN = 0xffffffff;

/** Returns the person at the machine. `SUDO_USER` is only what the environment claims. */
export function operatorOf(environment: Environment): MachineOperator {
  const uid = process.getuid?.() ?? -1;
  const claimedUser = environment['SUDO_USER'];
  return { name: nameOf(uid), uid, loginUid: readLoginUid(), claimedUser, host: hostname() };
}

/** Returns the name of a user id. A container may run under one that has no name. */
function nameOf(uid: number): string {
  try {
    const { uid: named, username } = userInfo(); // of the effective user id
    return named === uid ? username : `uid ${uid}`;
  } catch {
    return `uid ${uid}`;
  }
}

/**
 * Reads the user id of the login from the kernel; undefined if it is not known, as outside of
 * Linux.
 */
function readLoginUid(): number | undefined {
  try {
    const text = readFileSync('/proc/self/loginuid', 'utf8').trim();
    const uid = /^\d+$/.test(text) ? Number(text) : NO_LOGIN;
    return uid === NO_LOGIN ? undefined : uid;
  } catch {
    return undefined;
  }
}

const drop = () => undefined;

/**
 * Sends the warnings and errors of the domain to a logger, and drops its other lines, because the
 * command has its own results. As in the service, facts or an error may stand before the text.
 */
export function redirectNestLog(logger: Logger): void {
  const through =
    (level: 'warn' | 'error') =>
    (message: string | object, ...rest: readonly unknown[]) => {
      const [text, context] = [rest.at(-2), rest.at(-1)].map((part) =>
        typeof part === 'string' ? part : '',
      );
      if (typeof message === 'string') logger[level]({ context }, message);
      else {
        const facts = message instanceof Error ? { err: message } : message;
        logger[level]({ ...facts, context }, text);
      }
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

/** The surroundings of a command. A test brings its own, and so needs no process of its own. */
export interface Surroundings {
  readonly readEnvironment: () => Environment;
  readonly terminal: OperatorTerminal;
  /** Opens the log of the command, which the lines of the domain go to as well. */
  readonly openLog: (settings: Config['log']) => Logger;
}

/** The environment and the streams of this process, whose log is standard error. */
export const surroundingsOfProcess: Surroundings = {
  readEnvironment,
  terminal: terminalOf(process),
  openLog: (settings) => {
    const log = createLogger(settings, 2);
    redirectNestLog(log);
    return log;
  },
};
