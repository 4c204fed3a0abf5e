import { requireNode } from '../node-version.js';

requireNode();
const { startDemo } = await import('./start-demo.js');
await startDemo(process.argv.slice(2));
