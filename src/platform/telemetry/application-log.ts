import type { LoggerService } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { Logger as NestPinoLogger, PinoLogger } from 'nestjs-pino';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import type { IdentifiedRequest } from '#platform/http/interaction-id.js';
import { httpLogOptions } from './pino-options.js';

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
  readonly requestLog: readonly RequestHandler[];
}

/** Makes an application's log on the logger of the process. */
export function applicationLog(logger: Logger): ApplicationLog {
  const params = { pinoHttp: httpLogOptions(logger) };
  const root = new PinoLogger(params);
  const bind = (request: Request, _response: Response, next: NextFunction): void => {
    root.runInContext(next, { bindings: { interactionId: (request as IdentifiedRequest).id } });
  };
  return {
    nest: new ApplicationLogger(root, params),
    requestLog: [pinoHttp(params.pinoHttp), bind],
  };
}
