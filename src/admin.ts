import { requireNode } from './node-version.js';

requireNode();
const { breakGlass } = await import('#entry/break-glass.js');
process.exitCode = await breakGlass(process.argv.slice(2));
