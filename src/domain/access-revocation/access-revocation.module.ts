import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { CONFIG, type Config } from '#platform/config/config.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from './access-revocation.service.js';
import { AccessEndings } from './ended-reach/access-endings.service.js';
import { storeGroupSetting } from './ended-reach/group-setting.repository.js';

@Module({
  providers: [AccessEndings, AccessRevocation],
  exports: [AccessEndings, AccessRevocation],
})
export class AccessRevocationModule implements OnModuleInit {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'access'>,
    private readonly dataSource: DataSource,
  ) {}

  /**
   * Stores the setting SVC_ACCESS_BY_GROUPS in the database before the first request, because SQL
   * statements read the setting from there.
   */
  async onModuleInit(): Promise<void> {
    const { byGroups } = this.config.access;
    await withTransactionRetry(this.dataSource, (tx) => storeGroupSetting(tx, byGroups));
  }
}
