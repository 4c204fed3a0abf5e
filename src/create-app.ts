import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ThrottlerStorage } from '#platform/rate-limit/buckets/throttler.js';
import type { Logger } from 'pino';
import { IdentityProviders } from '#domain/identity-providers/identity-providers.service.js';
import type { Config } from '#platform/config/config.js';
import { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import { clientAddressResolver } from '#platform/http/request/client-address.js';
import { CLIENT_ADDRESS } from '#platform/http/request/client-origin.js';
import { corsByClass } from '#platform/http/edge/cors.js';
import { requestEdge } from '#platform/http/contract/edge-step.js';
import { expectations } from '#platform/http/body/expectation.js';
import { hostRule, ownAuthorities, ownHost } from '#platform/http/edge/host-rule.js';
import { httpsRedirect } from '#platform/http/edge/https-redirect.js';
import { interactionId } from '#platform/http/request/interaction-id.js';
import { unreadBodies } from '#platform/http/edge/lingering-close.js';
import { requestDeadline } from '#platform/http/edge/request-deadline.js';
import { withoutAuthority } from '#platform/http/contract/request-path.js';
import { requestTarget } from '#platform/http/edge/request-target.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { edgeHeadersFor, responseHeaders } from '#platform/http/contract/response-headers.js';
import { UnreadableRequests } from '#platform/http/server/unreadable-requests.js';
import { validationPipe } from '#platform/http/body/validation.js';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import { LimitHeaders } from '#platform/rate-limit/limit-headers.js';
import { applicationLog } from '#platform/telemetry/application-log.js';
import { rawAnswerMetrics, requestMetrics } from '#platform/telemetry/request-metrics.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { AppModule, type CompositionRoot } from './app.module.js';
import { Listeners } from './listeners.service.js';

/** The application of a composition. */
export interface Application {
  readonly nest: NestExpressApplication;
  /** Opens the listeners. @throws what keeps a port that must be ours from being bound */
  listen(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Builds the application of a composition, ready to listen.
 *
 * @throws whatever keeps it from starting: a database of another composition, a provider that cannot be discovered, a
 *   wrong CA key
 */
export async function createApp(
  config: Config,
  logger: Logger,
  root: CompositionRoot,
): Promise<Application> {
  const addressOf = clientAddressResolver(config.http.trustedProxies);
  const log = applicationLog(logger, addressOf);
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.compose(config, logger, root),
    {
      bodyParser: false, // bodies are read after the guards
      logger: log.nest,
      abortOnError: false, // the caller says what went wrong
    },
  );
  const express = app.getHttpAdapter().getInstance();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.set(CLIENT_ADDRESS, addressOf);
  app.useGlobalPipes(validationPipe);
  app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true });

  const voices = app.get(ErrorVoices);
  const headersOf = edgeHeadersFor(app.get(IdentityProviders).authorizationEndpointOrigins());
  const limits = new LimitHeaders(app.get<Buckets>(ThrottlerStorage), addressOf);
  const steps = [
    app.get(RequestsInFlight).track,
    interactionId,
    responseHeaders(headersOf, limits.set),
    log.requestLog,
    requestMetrics(app.get(ServiceMetrics)),
    requestDeadline(voices, root.timeouts),
    unreadBodies(root.timeouts.linger),
    corsByClass(config.http.corsOrigins),
    expectations(voices),
    requestTarget(voices),
  ];
  const unreadable = new UnreadableRequests({
    headersOf,
    limitsOf: (address) => limits.lines(address),
    voices,
    logger,
    linger: root.timeouts.linger,
    onRawAnswer: rawAnswerMetrics(app.get(ServiceMetrics)),
  });
  return {
    nest: app,
    async listen() {
      await app.init();
      await app.get(Listeners).open({
        application: requestEdge(
          [
            ...steps,
            hostRule(ownAuthorities(config.http), config.http.baseUrl, voices),
            withoutAuthority,
          ],
          express,
        ),
        redirect: requestEdge(
          [
            ...steps,
            hostRule(ownHost(config.http), config.http.baseUrl, voices),
            withoutAuthority,
            httpsRedirect(config.http.baseUrl),
          ],
          express,
        ),
        unreadable,
      });
    },
    close: () => app.close(),
  };
}
