import { refuseArguments, requireNode } from './node-version.js';
import { keepCompiledCode, runOrExit } from './start.js';

requireNode();
refuseArguments('main.js');
keepCompiledCode();
await runOrExit(async () => {
  const { readConfiguration } = await import('#entry/read-configuration.js');
  // reports a wrong configuration before any other module is loaded
  const loaded = await readConfiguration();
  const { startTracing } = await import('#entry/tracing.js');
  // instruments the modules that are loaded after it
  const tracing = await startTracing(loaded.config.tracing);
  const { startProduction } = await import('#entry/production.js');
  await startProduction(loaded, tracing);
});
