import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { shared } from '../../vitest.config.js';

/**
 * The packages whose code Stryker changes. Their names must resolve to the changed sources, and not
 * to their builds.
 */
const PACKAGES = ['openssh', 'scim-language', 'webauthn-policy'];

/**
 * The vitest configuration of the mutation tests. They are tests of pure functions, which need
 * neither PostgreSQL nor another program. The variable SVC_MUTATION_TESTS names the files,
 * separated by commas.
 */
export default defineConfig({
  ...shared,
  resolve: {
    ...shared.resolve,
    alias: PACKAGES.map((name) => ({
      find: new RegExp(`^@svc/${name}$`),
      replacement: resolve(`packages/${name}/src/index.ts`),
    })),
  },
  test: {
    ...shared.test,
    setupFiles: [],
    reporters: ['default'],
    include: (process.env['SVC_MUTATION_TESTS'] ?? '').split(','),
    execArgv: [], // Stryker runs tests in threads, which refuse options of V8
    maxWorkers: 1,
  },
});
