/**
 * This file alone imports `typeorm`. The service uses its connections, transactions and errors.
 * Entities, its query builder and its migrations are not used: repositories write SQL by the `sql`
 * tag, and `platform/database/migrations.ts` applies `.sql` files.
 */
export {
  DataSource,
  EntityManager,
  QueryFailedError,
  type QueryRunner,
  QueryRunnerAlreadyReleasedError,
} from 'typeorm';
