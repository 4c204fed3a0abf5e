import { Controller, Get, Header, Logger, Res } from '@nestjs/common';
import { HealthCheckService, HealthIndicatorService } from '@nestjs/terminus';
import type { Response } from 'express';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { assertTakesWrites } from '#platform/database/writable.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';

const DATABASE_TIMEOUT_MS = 2000;

/** Serves the health probes of an orchestrator such as Kubernetes: liveness and readiness. */
@Controller('health')
@Route({
  tier: 'unlimited',
  audience: 'api',
  errors: 'negotiated',
  hosts: 'any',
  tenantHosts: true,
  plainHttp: true,
  auth: PUBLIC,
})
export class HealthController {
  readonly #logger = new Logger('health');

  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly database: EntityManager,
    private readonly inFlight: RequestsInFlight,
  ) {}

  /**
   * Answers the liveness probe. It checks nothing, because a restart of the process would not help
   * if the database cannot be reached.
   */
  @Get()
  @Route({ summary: 'Says that the process is alive' })
  @Header('Content-Type', 'text/plain; charset=utf-8')
  live(): string {
    return 'ok';
  }

  /**
   * Answers the readiness probe. The answer is 503 if the database cannot be reached or takes no
   * writes, and after the process began to stop.
   */
  @Get('ready')
  @Route({ summary: 'Says whether the process takes traffic' })
  async ready(@Res({ passthrough: true }) response: Response): Promise<object> {
    if (this.inFlight.isStopping) {
      response.status(503);
      return { status: 'not_ready', reason: 'stopping' };
    }
    try {
      await this.health.check([
        () =>
          this.indicators
            .check('database')
            .attempt(() => assertTakesWrites(this.database))
            .withTimeout(DATABASE_TIMEOUT_MS),
      ]);
      return { status: 'ready' };
    } catch (error) {
      this.#logger.warn({ err: error }, 'not ready: the database is away or read-only');
      response.status(503);
      return { status: 'not_ready', reason: 'database' };
    }
  }
}
