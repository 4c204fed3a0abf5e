import { defineConfig } from 'vitest/config';
import { TestFiles } from './test/support/projects/projects.js';
import { shared } from './vitest.config.js';

/** The large proofs at full size: `npm run test:scale`. */
export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    env: { SCALE: 'full' },
    include: new TestFiles(import.meta.dirname).withScale(),
    globalSetup: ['test/support/global-setup.ts'],
  },
});
