import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LoggerService } from '@nestjs/common';
import { Logger as NestPinoLogger, PinoLogger } from 'nestjs-pino';
import type { Logger } from 'pino';
import { systemClock } from '#platform/clock/clock.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { callerOf } from '#platform/http/access/access.js';
import type { ClientAddressResolver } from '#platform/http/request/client-address.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { routeTemplateOf } from '#platform/http/routing/route-template.js';
import { nestPinoParams } from './pino-options.js';
import { servedRequest } from './served-request.js';

/** The target of the lines about requests. */
const HTTP_TARGET = 'http';
/** Told once, by the entry point, and not by Nest as well: what keeps an application from starting. */
const STARTUP_ERRORS = 'ExceptionHandler';
/** Worth a line only to whoever looks for it: how Nest puts the application together. */
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

/** The log of an application: Nest's and every Nest `Logger`'s, and what its requests are wrapped in. */
export interface ApplicationLog {
  readonly nest: LoggerService;
  /** A line per request, and the interaction id on every line written while it is served. */
  readonly requestLog: EdgeStep;
}

/** Makes an application's log on the logger of the process. */
export function applicationLog(logger: Logger, addressOf: ClientAddressResolver): ApplicationLog {
  const params = nestPinoParams(logger);
  const root = new PinoLogger(params);
  const requestLog: EdgeStep = (request, response, next) => {
    const start = systemClock.monotonic();
    const client = addressOf(request); // which is gone with its connection
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

/** Static files and probes: there are many of them, and they say little. */
const QUIET = /^\/(?:static\/|health(?:\/ready)?(?:$|\?))/;

/** The fields of a request's line; those without a value are left out. */
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
 * What is logged of a request: method, path and status. Headers, cookies, bodies and queries never are: they carry the
 * secrets.
 */
function requestLine(request: IncomingMessage, response: ServerResponse): string {
  const outcome = response.writableFinished ? response.statusCode : 'aborted';
  return `${request.method} ${plainPath(requestPath(request))} ${outcome}`;
}

/** In characters: more than any path of ours has. */
const LONGEST_PATH = 200;

/**
 * A path as far as it looks like one of ours: what follows may be a query that was encoded once too often, or control a
 * terminal.
 */
function plainPath(path: string): string {
  const [plain = ''] = /^[\w/.~-]*/.exec(path.slice(0, LONGEST_PATH)) ?? [];
  return plain.length === path.length ? path : `${plain}…`;
}
