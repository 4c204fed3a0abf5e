import 'reflect-metadata';
import { PINNED_ROOTS } from '#domain/authenticators/trust-anchors.js';
import { readEnvironment } from '#platform/config/environment.js';
import { loadConfig } from '#platform/config/load-config.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { createApp } from './create-app.js';
import { runOrExit } from './start.js';

/** The production composition root: the pinned vendor roots are all it trusts, and no variable adds to them. */
export function startProduction(): Promise<void> {
  return runOrExit(async () => {
    const { config, warnings } = loadConfig(readEnvironment());
    const logger = createLogger(config.log);
    for (const warning of warnings) logger.warn({ context: 'config' }, warning);

    const app = await createApp(config, logger, {
      composition: 'production',
      trustAnchors: PINNED_ROOTS,
      pageScripts: [],
      modules: [],
    });
    const { host, port } = config.http.listen;
    await app.listen(port, host);
    logger.info({ context: 'listeners' }, `${config.http.baseUrl} is served on port ${port}`);
  });
}
