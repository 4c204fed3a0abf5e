import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import { IdentityProviders } from '#domain/identity-providers/identity-providers.service.js';
import type { Config } from '#platform/config/config.js';
import { clientAddressResolver } from '#platform/http/client-address.js';
import { CLIENT_ADDRESS } from '#platform/http/client-origin.js';
import { interactionId } from '#platform/http/interaction-id.js';
import { responseHeaders } from '#platform/http/response-headers.js';
import { validationPipe } from '#platform/http/validation.js';
import { applicationLog } from '#platform/telemetry/application-log.js';
import { AppModule, type CompositionRoot } from './app.module.js';

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
): Promise<NestExpressApplication> {
  const { nest, requestLog } = applicationLog(logger);
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.compose(config, logger, root),
    {
      bodyParser: false, // bodies are read after the guards
      logger: nest,
      abortOnError: false, // the caller says what went wrong
    },
  );
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');

  app.set(CLIENT_ADDRESS, clientAddressResolver(config.http.trustedProxies));
  app.use(responseHeaders(app.get(IdentityProviders).authorizationEndpointOrigins()));
  app.use(interactionId, requestLog);
  app.useGlobalPipes(validationPipe);
  app.enableShutdownHooks([], { useProcessExit: true });
  return app;
}
