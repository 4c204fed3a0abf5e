import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { confirmAtStart } from '../../src/domain/admin/database-failover/confirm-at-start.js';
import type { FailoverSetting } from '../../src/domain/admin/database-failover/decision.js';
import {
  FAILOVER_LIMITS,
  type FailoverLimits,
} from '../../src/domain/admin/database-failover/failover-limits.js';
import { writePrivateKey } from '@svc/openssh';
import { openMigrationConnection, openPool } from '../../src/platform/database/connection.js';
import { startTestApp, type EnrolledUser, type TestApp } from './app.js';
import { newAddress, type Answer } from './client.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { RecordingLog } from './recording-log.js';
import { rows } from './rows.js';
import { PUBLIC_KEY } from './ssh-issuance.js';

/**
 * The times of a failover in these tests, in milliseconds. All are short, except for `patience`.
 * This is how long a process waits for the reports of others, and it must not end during a test.
 */
const FAST: Partial<FailoverLimits> = {
  heartbeat: 20,
  poll: 10,
  retry: 10,
  remembered: 30,
  patience: 3_600_000,
};

/**
 * A database in which a test changes the recorded identity of its server. To the service the server
 * then seems to be another one, as after a failover. Several processes of the service use the
 * database, each with its own connections.
 */
export class FailoverWorld {
  readonly #silent: string[] = [];
  readonly #parts = new AsyncDisposableStack();
  readonly #environment = {
    SVC_SSH_CA_KEY: writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca'),
  };

  private constructor(
    readonly database: TestDatabase,
    /** Connections of the test itself. They work even while no process has confirmed the server. */
    readonly direct: DataSource,
  ) {
    this.#parts.defer(() => database.drop());
    this.#parts.defer(() => direct.destroy());
  }

  static async open(): Promise<FailoverWorld> {
    const database = await createTestDatabase();
    const address = { connectionString: database.url };
    return new FailoverWorld(database, await openPool(address, new RecordingLog(), 4));
  }

  close(): Promise<void> {
    return this.#parts.disposeAsync();
  }

  /** Starts a process of the service. It may be closed before this object. */
  async start(): Promise<TestApp> {
    const app = await startTestApp({
      database: this.database,
      failoverLimits: FAST,
      environment: this.#environment,
    });
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= app.close());
    this.#parts.defer(close);
    return { ...app, close };
  }

  query<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return rows<Row>(this.direct, text, values);
  }

  /** Makes the recorded start of the server an hour earlier, so that the server seems restarted. */
  async restart(): Promise<void> {
    await this.query("UPDATE database_identity SET started_at = started_at - interval '1 hour'");
  }

  /**
   * Rewrites the recorded start and timeline of the server, so that a standby seems to have been
   * promoted.
   */
  async promote(): Promise<void> {
    await this.query(
      "UPDATE database_identity SET started_at = started_at - interval '1 hour', timeline = 'FFFFFFFF'",
    );
  }

  /**
   * Deletes the audit rows of the newest transaction and changes the recorded server. It seems to
   * the service that a failover has lost this commit.
   */
  async loseTheLastCommit(
    by: 'promote' | 'restart' | 'confirmed by others' | 'with the confirmation',
  ): Promise<void> {
    const changes = {
      promote: "started_at = started_at - interval '1 hour', timeline = 'FFFFFFFF'",
      restart: "started_at = started_at - interval '1 hour'",
      'with the confirmation':
        "started_at = started_at - interval '1 hour', confirmed_at = confirmed_at - interval '1 microsecond'",
      'confirmed by others': 'confirmed_at = clock_timestamp()',
    };
    await this.direct.transaction(async (tx) => {
      await tx.query(
        `DELETE FROM audit_events
         WHERE xmin = (SELECT xmin FROM audit_events ORDER BY id DESC LIMIT 1)`,
      );
      await tx.query(`UPDATE database_identity SET ${changes[by]}`);
    });
  }

  /** Runs the confirmation of the server that a process runs at its start. */
  async confirmAtStart(setting: FailoverSetting, isEmbedded = false): Promise<void> {
    const address = { connectionString: this.database.url };
    const confirm = confirmAtStart(
      { database: { ...this.database.config, failover: setting } },
      { ...FAILOVER_LIMITS, ...FAST },
    );
    await confirm({ isEmbedded, open: () => openMigrationConnection(address, new RecordingLog()) });
  }

  /**
   * Adds the row of a process that sent its last heartbeat some seconds ago. Returns the id of the
   * process.
   */
  async addSilentReplica(secondsAgo = 0): Promise<string> {
    const id = randomUUID();
    this.#silent.push(id);
    await this.query(
      'INSERT INTO replicas (id, seen_at) VALUES ($1, clock_timestamp() - make_interval(secs => $2))',
      [id, secondsAgo],
    );
    return id;
  }

  /**
   * Removes the processes that {@link addSilentReplica} added, so that no later test waits for
   * them.
   */
  async removeSilentReplicas(): Promise<void> {
    await this.query('DELETE FROM replicas WHERE id = ANY ($1)', [this.#silent.splice(0)]);
  }

  /**
   * Writes the report of a process about the current server, with its answer if commits are lost.
   */
  async report(id: string, isLost: boolean): Promise<void> {
    await this.query(
      `INSERT INTO replica_reports (replica_id, started_at, is_witness, is_lost, reported_at)
       VALUES ($1, pg_postmaster_start_time(), true, $2, clock_timestamp())`,
      [id, isLost],
    );
  }

  async isConfirmed(): Promise<boolean> {
    const [row] = await this.query<{ is: boolean }>(
      `SELECT started_at = pg_postmaster_start_time() AND timeline <> 'FFFFFFFF' AS is FROM database_identity`,
    );
    return row?.is === true;
  }

  /** Returns the details of the audit events of confirmed servers, the oldest first. */
  async confirmations(): Promise<Record<string, unknown>[]> {
    const found = await this.query<{ details: Record<string, unknown> }>(
      "SELECT details FROM audit_events WHERE type = 'database_confirmed' ORDER BY created_at",
    );
    return found.map(({ details }) => details);
  }

  async sessions(): Promise<number> {
    return (await this.query('SELECT id FROM sessions')).length;
  }
}

/** Requests an SSH certificate for a user, from an unused client IP address. */
export function issueCertificate({ client }: EnrolledUser): Promise<Answer> {
  return client.post('/v1/credentials/ssh', { public_key: PUBLIC_KEY }, { address: newAddress() });
}
