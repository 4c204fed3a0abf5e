import type { LoggerService } from '@nestjs/common';
import type { Request, RequestHandler, Response } from 'express';
import { Logger as NestPinoLogger, PinoLogger } from 'nestjs-pino';
import type { Logger } from 'pino';
import { interactionIdOf } from '#platform/http/interaction-id.js';
import { nestPinoParams } from './pino-options.js';

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
  readonly requestLog: RequestHandler;
}

/** Makes an application's log on the logger of the process. */
export function applicationLog(logger: Logger): ApplicationLog {
  const params = nestPinoParams(logger);
  const root = new PinoLogger(params);
  const requestLog: RequestHandler = (request, response, next) => {
    const interactionId = interactionIdOf(request);
    const start = performance.now();
    response.once('close', () => {
      const ms = Math.round(performance.now() - start);
      const line = requestLine(request, response);
      if (response.statusCode < 500) logger.info({ context: HTTP_TARGET, interactionId, ms }, line);
      else logger.error({ context: HTTP_TARGET, interactionId, ms }, line);
    });
    root.runInContext(next, { bindings: { interactionId } });
  };
  return { nest: new ApplicationLogger(root, params), requestLog };
}

/**
 * What is logged of a request: method, path and status. Headers, cookies, bodies and queries never are: they carry the
 * secrets.
 */
function requestLine(request: Request, response: Response): string {
  const [path = ''] = request.originalUrl.split('?', 1);
  const outcome = response.writableFinished ? response.statusCode : 'aborted';
  return `${request.method} ${path} ${outcome}`;
}
