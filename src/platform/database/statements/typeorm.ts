/**
 * This file alone imports `typeorm`. The service uses only its connections, transactions and
 * errors. It uses neither entities nor the query builder nor the migrations of TypeORM:
 * repositories write SQL by the `sql` tag, and `platform/database/migrations.ts` applies `.sql`
 * files.
 */
export {
  DataSource,
  EntityManager,
  QueryFailedError,
  type QueryRunner,
  QueryRunnerAlreadyReleasedError,
} from 'typeorm';
