import type { RequestListener } from 'node:http';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ThrottlerStorage } from '#platform/rate-limit/buckets/throttler.js';
import type { Logger } from 'pino';
import { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import { IssuerHosts } from '#domain/organizations/issuers/issuer-hosts.js';
import type { Config, ValidConfig } from '#platform/config/config.js';
import { startProblem } from '#platform/database/hosts/refusals.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { expectations } from '#platform/http/body/expectation.js';
import { requestEdge, type EdgeStep } from '#platform/http/contract/edge-step.js';
import { corsByAudience } from '#platform/http/edge/cors.js';
import { hostRule, ownAuthorities, ownHost } from '#platform/http/edge/host-rule.js';
import { httpsRedirect } from '#platform/http/edge/https-redirect.js';
import { unreadBodies } from '#platform/http/edge/lingering-close.js';
import { requestDeadline } from '#platform/http/edge/request-deadline.js';
import { requestTarget } from '#platform/http/edge/request-target.js';
import {
  edgeHeadersFor,
  responseHeaders,
  type EdgeHeaders,
} from '#platform/http/edge/response-headers.js';
import { validationPipe } from '#platform/http/errors/as-domain-error.js';
import { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { clientAddressResolver } from '#platform/http/request/client-address.js';
import { CLIENT_ADDRESS } from '#platform/http/request/client-origin.js';
import { interactionId } from '#platform/http/request/interaction-id.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { ParseErrorResponder } from '#platform/http/server/parse-error-responder.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { withRootSecret } from '#platform/kms/root-secret.js';
import type { Buckets } from '#platform/rate-limit/buckets/buckets.js';
import { LimitHeaders } from '#platform/rate-limit/limit-headers.js';
import { applicationLog, type ApplicationLog } from '#platform/telemetry/application-log.js';
import { rawAnswerMetrics, requestMetrics } from '#platform/telemetry/request-metrics.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { AppModule, type CompositionRoot } from './app.module.js';
import { Listeners, type Edges } from './listeners.service.js';

/** An application that is built, but does not listen yet. */
export interface BuiltApplication {
  readonly nest: NestExpressApplication;
  /**
   * Opens the listeners.
   *
   * @throws Error if a port that the service needs cannot be bound
   */
  listen(): Promise<void>;
  close(): Promise<void>;
}

/** The parts from which the Nest application is made. */
interface NestParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly root: CompositionRoot;
  readonly log: ApplicationLog;
  readonly kmsKeys: KmsKeys;
}

/**
 * The parts from which the edges are made. An edge is the handler that gets each request first,
 * before Express.
 */
interface Parts extends Omit<NestParts, 'kmsKeys'> {
  readonly nest: NestExpressApplication;
  readonly headersOf: EdgeHeaders;
  readonly limits: LimitHeaders;
}

/**
 * Builds the application for production, the demo or a test, as the composition root says. The
 * result does not listen yet.
 *
 * @throws Error for every reason not to start, such as a key of KMS that does not fit, a database
 *   of another composition, or a route without rules
 */
export async function createApp(
  validConfig: ValidConfig,
  logger: Logger,
  root: CompositionRoot,
): Promise<BuiltApplication> {
  const kmsKeys = await KmsKeys.open(validConfig, { limits: root.kmsLimits });
  const config = await withRootSecret(validConfig, kmsKeys);
  const addressOf = clientAddressResolver(config.http.trustedProxies);
  const log = applicationLog(logger, addressOf);
  const { url } = config.database;
  const nest = await createNest({ config, logger, root, log, kmsKeys }).catch((error: unknown) => {
    throw startProblem(error, url);
  });
  nest.set(CLIENT_ADDRESS, addressOf);
  const headersOf = edgeHeadersFor(nest.get(IdentityProviders).authorizationEndpointOrigins());
  const limits = new LimitHeaders(nest.get<Buckets>(ThrottlerStorage), addressOf);
  const edges = edgesOf({ nest, config, logger, root, log, headersOf, limits });
  return {
    nest,
    async listen() {
      await nest.init().catch((error: unknown) => {
        throw startProblem(error, url);
      });
      await nest.get(Listeners).open(edges);
    },
    close: () => nest.close(),
  };
}

/**
 * Creates the Nest application. Express serves only as its router: bodies, entity tags and headers
 * are the work of this service.
 */
async function createNest({
  config,
  logger,
  root,
  log,
  kmsKeys,
}: NestParts): Promise<NestExpressApplication> {
  const nest = await NestFactory.create<NestExpressApplication>(
    AppModule.compose(config, logger, root, kmsKeys),
    {
      bodyParser: false, // the route guard reads bodies
      logger: log.nest,
      abortOnError: false, // the caller reports the error
    },
  );
  nest.disable('x-powered-by');
  nest.disable('etag');
  nest.set('query parser', 'simple');
  nest.useGlobalPipes(validationPipe);
  nest.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true });
  return nest;
}

/**
 * Makes the two edges, which are the handlers that get each request before Express. One is for the
 * application. The other is for the plain HTTP listener beside TLS, and only redirects to https.
 */
function edgesOf(parts: Parts): Edges {
  const { nest, config } = parts;
  const routePolicies = nest.get(RoutePolicies);
  const express = nest.getHttpAdapter().getInstance() as RequestListener;
  const hostOptions = {
    baseUrl: config.http.baseUrl,
    routePolicies,
    errorRenderer: nest.get(ErrorRenderer),
    tenantHosts: new IssuerHosts(config.http.baseUrl, nest.get(DataSource).manager),
  };
  const first = firstSteps(parts);
  const onAuthority = hostRule(ownAuthorities(config.http), hostOptions);
  const onHost = hostRule(ownHost(config.http), hostOptions);
  const redirect = httpsRedirect(routePolicies, config.http.baseUrl);
  const { normalizeTarget } = routePolicies;
  return {
    application: requestEdge([...first, onAuthority, normalizeTarget], express),
    redirect: requestEdge([...first, onHost, normalizeTarget, redirect], express),
    parseErrorResponder: parseErrorResponder(parts),
  };
}

/** Returns the steps with which both edges begin, in their order. */
function firstSteps({ nest, config, root, log, headersOf, limits }: Parts): EdgeStep[] {
  const routePolicies = nest.get(RoutePolicies);
  const errorRenderer = nest.get(ErrorRenderer);
  const inFlight = nest.get(RequestsInFlight);
  return [
    inFlight.track,
    interactionId,
    responseHeaders(routePolicies, headersOf, (request, response, status) => {
      limits.set(request, response, status);
      inFlight.endConnection(response);
    }),
    log.requestLog,
    requestMetrics(nest.get(ServiceMetrics)),
    requestDeadline(errorRenderer, root.timeouts),
    unreadBodies(root.timeouts.linger),
    corsByAudience(routePolicies, config.http.corsOrigins),
    expectations(errorRenderer),
    requestTarget(errorRenderer),
  ];
}

function parseErrorResponder(parts: Parts): ParseErrorResponder {
  const { nest, logger, root, headersOf, limits } = parts;
  const inFlight = nest.get(RequestsInFlight);
  return new ParseErrorResponder({
    headersOf,
    limitsOf: (address) => limits.lines(address),
    errorRenderer: nest.get(ErrorRenderer),
    logger,
    linger: root.timeouts.linger,
    onRawResponse: rawAnswerMetrics(nest.get(ServiceMetrics)),
    isStopping: () => inFlight.isStopping,
  });
}
