import { Logger, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource, EntityManager } from 'typeorm';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { Composition } from './composition.js';
import { Database, openDatabase } from './open-database.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';

/**
 * The database, for everyone: TypeORM's `DataSource` and `EntityManager`, connected to SVC_DATABASE_URL or to the
 * embedded PostgreSQL, migrated and claimed before anything that needs them is built.
 *
 * It registers no entities: rows are read and written by the repositories' own SQL.
 */
@Module({})
export class DatabaseModule implements OnApplicationShutdown {
  constructor(private readonly database: Database) {}

  /** @param composition the composition root that starts: it refuses a database that another one made */
  static forRoot(composition: Composition): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      providers: [
        {
          provide: Database,
          inject: [CONFIG],
          useFactory: (config: Config) =>
            openDatabase(config.database, composition, new Logger('database')),
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
      exports: [DataSource, EntityManager, TenantWork],
    };
  }

  onApplicationShutdown(): Promise<void> {
    return this.database.close();
  }
}
