import { describe, expect, it } from 'vitest';
import { createTestDatabase } from '../support/database.js';
import { startServerProcess } from '../support/server-process.js';

describe('a URL of the database without a user', () => {
  it('takes the user from PGUSER, as the chart gives it', async () => {
    const database = await createTestDatabase();
    try {
      const [, login = '', rest = ''] = /^postgres:\/\/([^@/]+)@(.*)$/.exec(database.url) ?? [];
      const url = `postgres://${rest}`;
      const user = login.split(':')[0] ?? '';
      const known = startServerProcess('migrate.js', { SVC_DATABASE_URL: url, PGUSER: user });
      expect(await known.ended, known.output()).toBe(0);
      const unknown = startServerProcess('migrate.js', { SVC_DATABASE_URL: url, PGUSER: 'nobody' });
      expect(await unknown.ended).toBe(1);
      expect(unknown.output()).toContain('user "nobody"');
    } finally {
      await database.drop();
    }
  });
});
