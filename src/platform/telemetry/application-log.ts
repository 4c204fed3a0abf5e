import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LoggerService } from '@nestjs/common';
import { Logger as NestPinoLogger, PinoLogger } from 'nestjs-pino';
import type { Logger } from 'pino';
import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { callerOf } from '#platform/http/access/caller.js';
import type { ClientAddressResolver } from '#platform/http/request/client-address.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { routeTemplateOf } from '#platform/http/routing/route-template.js';
import { nestPinoParams, servedRequest } from './pino-options.js';

/**
 * The target of log lines about requests. The target of a line names the part of the service that
 * writes it.
 */
const HTTP_TARGET = 'http';
/**
 * The context under which Nest logs an error of the start. Lines of this context are left out,
 * because the entry point prints the same error.
 */
const STARTUP_ERRORS = 'ExceptionHandler';
/**
 * The contexts of the lines that Nest writes while it builds the application. These lines are
 * logged at debug level, because operators do not need them.
 */
const ASSEMBLY = new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer']);

class ApplicationLogger extends NestPinoLogger {
  override log(message: unknown, ...rest: unknown[]): void {
    if (ASSEMBLY.has(String(rest.at(-1)))) super.debug(message, ...rest);
    else super.log(message, ...rest);
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (rest.at(-1) !== STARTUP_ERRORS) super.error(message, ...rest);
  }
}

/** The log of an application: the logger that Nest writes to, and the step that logs requests. */
export interface ApplicationLog {
  readonly nest: LoggerService;
  /**
   * Writes one log line for each request, and adds the interaction id of the request to all lines
   * that are written during it.
   */
  readonly requestLog: EdgeStep;
}

/** Makes the logger that Nest writes to, for a process that serves no requests. */
export function nestLog(logger: Logger): LoggerService {
  const params = nestPinoParams(logger);
  return new ApplicationLogger(new PinoLogger(params), params);
}

/** Makes the log of an application on the logger of the process. */
export function applicationLog(logger: Logger, addressOf: ClientAddressResolver): ApplicationLog {
  const params = nestPinoParams(logger);
  const root = new PinoLogger(params);
  const requestLog: EdgeStep = (request, response, next) => {
    const start = systemClock.monotonic();
    // The IP address is read now, because it is unknown after the connection was closed.
    const client = addressOf(request);
    response.once('close', () => {
      const ms = Math.round(systemClock.monotonic() - start);
      const facts = { ...factsOf(request, response), ms, client };
      const line = requestLine(request, response);
      if (response.statusCode >= 500) logger.error(facts, line);
      else if (QUIET.test(request.url ?? '')) logger.debug(facts, line);
      else logger.info(facts, line);
    });
    servedRequest.run(request, next);
  };
  return { nest: new ApplicationLogger(root, params), requestLog };
}

/** Matches the paths of static files and of probes, whose lines are logged at debug level. */
const QUIET = /^\/(?:static\/|health(?:\/ready)?(?:$|\?))/;

/** Returns the facts that the log line of a request shows. Facts without a value are omitted. */
function factsOf(request: IncomingMessage, response: ServerResponse): object {
  const { userId, orgId, clientId } = callerOf(request);
  return {
    context: HTTP_TARGET,
    interactionId: interactionIdOf(request),
    method: request.method,
    route: routeTemplateOf(request),
    status: response.writableFinished ? response.statusCode : 'aborted',
    user_id: userId,
    org_id: orgId,
    client_id: clientId,
  };
}

/**
 * Returns the message of a request's line: method, path and status. Headers, cookies, bodies and
 * queries are never logged, because they may contain secrets.
 */
function requestLine(request: IncomingMessage, response: ServerResponse): string {
  const outcome = response.writableFinished ? response.statusCode : 'aborted';
  return `${request.method} ${plainPath(requestPath(request))} ${outcome}`;
}

/** The largest number of characters of a logged path. No route has a longer path. */
const LONGEST_PATH = 200;

/**
 * Returns a path for the log. It ends before the first unusual character, because the rest may be a
 * query that was encoded twice, or may control a terminal.
 */
function plainPath(path: string): string {
  const [plain = ''] = /^[\w/.~-]*/.exec(path.slice(0, LONGEST_PATH)) ?? [];
  return plain.length === path.length ? path : `${plain}…`;
}
