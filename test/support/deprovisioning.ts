import type { EntityManager } from 'typeorm';
import type { AccountAudit, Deprovisioning } from '../../src/domain/directory/account.js';
import { UserDirectory } from '../../src/domain/directory/user-directory.service.js';
import type { TestApp } from './app.js';

interface Ending extends Deprovisioning {
  readonly userId: string;
}

export type Deprovision = ReturnType<typeof deprovision>;

/**
 * Returns functions that remove, deactivate or activate an account, or revoke its credentials. Each
 * first takes the lock that the method of `UserDirectory` requires.
 */
export function deprovision(app: TestApp) {
  const directory = app.nest.get(UserDirectory, { strict: false });
  const ending =
    (act: 'remove' | 'deactivate' | 'revokeCredentials') =>
    async (tx: EntityManager, { userId, ...end }: Ending) =>
      directory[act](tx, await directory.lock(tx, userId), end);
  return {
    remove: ending('remove'),
    deactivate: ending('deactivate'),
    revokeCredentials: ending('revokeCredentials'),
    activate: async (
      tx: EntityManager,
      { userId, audit }: { readonly userId: string; readonly audit: AccountAudit },
    ) => directory.activate(tx, await directory.lock(tx, userId), audit),
  };
}
