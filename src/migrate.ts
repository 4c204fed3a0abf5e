import { refuseArguments, requireNode } from './node-version.js';

requireNode();
refuseArguments('migrate.js');
const { migrateProduction } = await import('#entry/migrate-production.js');
await migrateProduction();
