import { requireNode } from './node-version.js';

requireNode();
const { startProduction } = await import('./production.js');
await startProduction();
