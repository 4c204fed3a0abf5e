import { resolve } from 'node:path';

/**
 * The environment variable that makes Node store the compiled code of modules in a folder. The
 * tests start the same program a hundred times, and without the cache a third of each start is
 * compiling. `npm ci` deletes the folder.
 */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: resolve(import.meta.dirname, '../../node_modules/.cache/svc-test/node'),
} as const;
