import { requireNode } from './node-version.js';

requireNode();
const { breakGlass } = await import('./break-glass/break-glass.js');
process.exitCode = await breakGlass(process.argv.slice(2));
