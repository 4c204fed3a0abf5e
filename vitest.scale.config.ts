import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { TestFiles } from './test/support/projects/projects.js';
import { shared } from './vitest.config.js';

const globalSetup = ['test/support/global-setup.ts'];

/**
 * The tests of issuance, SCIM, OAuth and revocation that run once more behind a PgBouncer. Without
 * the program, `test/api/pooler.test.ts` says what is missing.
 */
const POOLED = [
  'test/api/{ssh-issuance,ssh-credentials,ssh-issuance-race,aws-credentials,aws-issuance-race}.test.ts',
  'test/api/{scim-people,scim-races,scim-people-races,scim-large-groups}.test.ts',
  'test/api/oauth/{code-replay,once-only,token-exchange,device-flow,logout}.test.ts',
  'test/api/{deprovision,deprovision-certificates,own-sessions,ssh-revocation-list}.test.ts',
];

/** The large proofs at full size: `npm run test:scale`. */
export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    projects: [
      {
        extends: true,
        test: {
          name: 'scale',
          env: { SCALE: 'full' },
          include: new TestFiles(import.meta.dirname).withScale(),
          globalSetup,
        },
      },
      {
        extends: true,
        test: {
          name: 'pooled',
          include: existsSync('/usr/sbin/pgbouncer') ? POOLED : [],
          globalSetup: ['test/support/pooled-setup.ts'],
        },
      },
    ],
  },
});
