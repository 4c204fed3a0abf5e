import { refuseArguments, requireNode } from './node-version.js';

requireNode();
refuseArguments('migrate.js');
const { endAtEarlySignals } = await import('./start.js');
endAtEarlySignals();
const { migrateProduction } = await import('#entry/migrate-production.js');
await migrateProduction();
