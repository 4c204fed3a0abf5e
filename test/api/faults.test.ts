import { afterAll, beforeAll, expect, it } from 'vitest';
import { FaultScene } from '../support/high-availability/fault-scene.js';
import { runFault } from '../support/high-availability/fault-suite.js';
import { SHORT_FAULTS } from '../support/high-availability/faults.js';
import { CLUSTER_PROGRAMS } from '../support/high-availability/patroni-cluster.js';
import '../support/full-scale-only.js';
import { requires } from '../support/programs.js';
import { SSHD_PROGRAMS } from '../support/sshd.js';

/**
 * Causes a few faults in a Patroni cluster with synchronous replication. `npm run bench -- faults`
 * causes more, and measures the outages, which are longer on a busy machine.
 */
requires('postgresql', 'cc', ...CLUSTER_PROGRAMS, ...SSHD_PROGRAMS).describe(
  'a cluster of Patroni under load',
  () => {
    let scene: FaultScene;
    beforeAll(async () => {
      scene = await FaultScene.start();
    });
    afterAll(() => scene.close());

    it.each(SHORT_FAULTS)(
      '$name: loses nothing that was acknowledged, and answers 503 until it works again',
      async (fault) => {
        const wrong: string[] = [];
        const row = await runFault(scene, fault, (text) => wrong.push(text));
        expect(wrong).toEqual([]);
        expect(row).toMatchObject({ wrong: 0, lost: 0, undone: 0, twice: 0 });
        if (fault.endsReplica !== true) expect(row['no answer']).toBe(0);
      },
    );

    it('is seen when it loses a certificate or brings a deleted user back', async () => {
      const { cluster, load } = scene;
      await load.untilEachSucceeded(1);
      const certificate = load.ledger.answered.at(-1);
      const leader = await cluster.leader();
      await leader.query('DELETE FROM ssh_certificates WHERE serial = $1', [certificate?.serial]);
      expect(await scene.brokenSince(certificate?.at ?? 0)).toMatchObject({ lost: 1, undone: 0 });

      const [id, made] = [...load.users].findLast(([, { state }]) => state === 'made') ?? [
        '',
        null,
      ];
      load.users.set(id, { at: made?.at ?? 0, state: 'ended' });
      expect(await scene.brokenSince(made?.at ?? 0)).toMatchObject({ undone: 1 });
    });
  },
);
