import { refuseArguments, requireNode } from './node-version.js';
import { runOrExit } from './start.js';

requireNode();
refuseArguments('main.js');
await runOrExit(async () => {
  const { readConfiguration } = await import('#platform/config-sources/read-configuration.js');
  // reports a wrong configuration before any other module is loaded
  const loaded = await readConfiguration();
  const { startTracing } = await import('#platform/telemetry/tracing.js');
  // instruments the modules that are loaded after it
  const tracing = await startTracing(loaded.config.tracing);
  const { startProduction } = await import('./production.js');
  await startProduction(loaded, tracing);
});
