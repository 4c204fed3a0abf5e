import {
  Logger,
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { Composition } from './composition.js';
import {
  Database,
  openDatabase,
  type ConfirmAtStart,
  type PreparedDatabase,
} from './open-database.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';

/**
 * Provides the database to every module: TypeORM's `DataSource` and `EntityManager`, connected to
 * SVC_DATABASE_URL or to the embedded PostgreSQL. Before any provider that uses them is built, the
 * database is migrated. A database that belongs to another composition (production, demo or test)
 * is refused.
 *
 * It registers no entities of TypeORM, because repositories read and write rows by SQL.
 */
@Module({})
export class DatabaseModule implements OnModuleDestroy, OnApplicationShutdown {
  constructor(private readonly database: Database) {}

  /**
   * @param composition the program that starts (production, demo or test); the start fails if the
   *   database belongs to another program
   * @param confirm makes the function that checks at the start if the database server has lost
   *   commits (docs/decisions/0020); undefined for no such check
   * @param from the database that the primary process prepared for this worker
   */
  static forRoot(
    composition: Composition,
    confirm?: (config: Config) => ConfirmAtStart,
    from?: PreparedDatabase,
  ): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        {
          provide: Database,
          inject: [CONFIG],
          useFactory: (config: Config) => {
            const log = new Logger('database');
            return openDatabase(config.database, composition, log, confirm?.(config), from);
          },
        },
        {
          provide: DataSource,
          inject: [Database],
          useFactory: (database: Database) => database.dataSource,
        },
        {
          provide: EntityManager,
          inject: [DataSource],
          useFactory: (dataSource: DataSource) => dataSource.manager,
        },
        {
          provide: TenantWork,
          inject: [Database],
          useFactory: (database: Database) => database.tenantWork,
        },
      ],
      exports: [Database, DataSource, EntityManager, TenantWork],
    };
  }

  /**
   * Begins to watch if the server answers. Nest calls this method when the stop begins, before the
   * listeners wait for the requests in flight.
   */
  onModuleDestroy(): void {
    void this.database.cutIfSilent();
  }

  onApplicationShutdown(): Promise<void> {
    return this.database.close();
  }
}
