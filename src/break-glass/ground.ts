import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { Logger as NestLogger, type LoggerService } from '@nestjs/common';
import type { Logger } from 'pino';
import type { MachineOperator } from '#domain/admin/operator-access/operator.js';
import type { Config } from '#platform/config/config.js';
import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { terminalOf, type OperatorTerminal } from './operator/terminal.js';

/**
 * The value of the kernel's login uid for a process outside of a login session, such as a daemon:
 * -1 in 32 bits.
 */
const NO_LOGIN = 0xffffffff;

/**
 * Returns the operator who runs the command, for the audit log: the user id and its name, the user
 * id of the login session (which `sudo` does not change), and the host. The variable `SUDO_USER` is
 * recorded only as a claim (`claimedUser`), because any user can set it.
 */
export function operatorOf(environment: Environment): MachineOperator {
  const uid = process.getuid?.() ?? -1;
  const claimedUser = environment['SUDO_USER'];
  return { name: nameOf(uid), uid, loginUid: readLoginUid(), claimedUser, host: hostname() };
}

/**
 * Returns the name of a user id. In many containers a user id has no name; the result is then `uid`
 * and the number.
 */
function nameOf(uid: number): string {
  try {
    const { uid: named, username } = userInfo(); // the effective user, not the real one
    return named === uid ? username : `uid ${uid}`;
  } catch {
    return `uid ${uid}`;
  }
}

/**
 * Reads the user id of the login session from the kernel; undefined if this process belongs to no
 * login session, or if the system is not Linux.
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
 * Sends the warnings and errors of the domain layer to a logger, and drops its other lines, because
 * the command prints its own results. The last two arguments of a call of Nest's logger are the
 * text and the name of the caller. An object with facts, or an error, may come before them.
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

/**
 * The environment, the terminal and the log that a command uses. A test passes its own, so that it
 * can run a command without starting a process.
 */
export interface Surroundings {
  readonly readEnvironment: () => Environment;
  readonly terminal: OperatorTerminal;
  /** Opens the log of the command. The log lines of the domain layer also go there. */
  readonly openLog: (settings: Config['log']) => Logger;
}

/** The environment and the streams of this process. The log goes to standard error. */
export const surroundingsOfProcess: Surroundings = {
  readEnvironment,
  terminal: terminalOf(process),
  openLog: (settings) => {
    const log = createLogger(settings, 2);
    redirectNestLog(log);
    return log;
  },
};
