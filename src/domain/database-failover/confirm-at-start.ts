import { moveSerials } from '#domain/ssh-certificates/serials/serials.repository.js';
import { systemClock } from '#platform/clock/clock.js';
import {
  lockConfirmedIdentity,
  readIdentity,
  recordIdentity,
} from '#platform/database/identity/database-identity.js';
import type { ConfirmAtStart } from '#platform/database/open-database.js';

/** Confirms the server of a start. */
export const confirmAtStart: ConfirmAtStart = async (database) => {
  const dataSource = await database.open();
  const runner = dataSource.createQueryRunner();
  try {
    const identity = await readIdentity(runner.manager);
    await runner.manager.transaction(async (tx) => {
      const confirmed = await lockConfirmedIdentity(tx);
      await moveSerials(tx, { kind: 'same', clock: systemClock.milliseconds() });
      if (confirmed?.startedAt !== identity.startedAt) await recordIdentity(tx, identity, false);
    });
  } finally {
    await runner.release();
    await dataSource.destroy();
  }
};
