import { requireNode } from './node-version.js';

requireNode();
const { migrateProduction } = await import('./migrate-production.js');
await migrateProduction();
