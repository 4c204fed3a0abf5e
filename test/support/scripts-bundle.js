import { join, resolve } from 'node:path';
import server from '../../scripts/server-bundle.js';

const FOLDER = resolve(import.meta.dirname);

/** The scripts that {@link runScript} runs and that import the application. */
const SCRIPTS = [
  'replica',
  'dying-replica',
  'dying-sealer',
  'embedded-server',
  'failover/replica-process',
];

/**
 * The configuration of the bundle of the tests' scripts. It differs from the one of the server's
 * bundle (scripts/server-bundle.js) in its entries, and it does not bundle the libraries of the
 * tests.
 */
export default {
  ...server,
  input: Object.fromEntries(SCRIPTS.map((name) => [name, join(FOLDER, `${name}.ts`)])),
  external: (id) => server.external(id) || /^(?:vitest|@nestjs\/testing)(?:\/|$)/.test(id),
};
