import { requireNode } from '../node-version.js';

requireNode();
const { startDemo } = await import('#entry/start-demo.js');
await startDemo(process.argv.slice(2));
