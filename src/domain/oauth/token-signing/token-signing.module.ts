import { Module } from '@nestjs/common';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { TokenSigningKeysRepository } from './token-signing-keys.repository.js';
import { TokenSigningKeys } from './token-signing-keys.service.js';

@Module({
  providers: [
    TokenSigningKeysRepository,
    {
      provide: TokenSigningKeys,
      inject: [CONFIG, DataSource, TokenSigningKeysRepository, KmsKeys],
      useFactory: (
        config: Config,
        dataSource: DataSource,
        repository: TokenSigningKeysRepository,
        kmsKeys: KmsKeys,
      ) => TokenSigningKeys.open(config, dataSource, repository, kmsKeys),
    },
  ],
  exports: [TokenSigningKeys],
})
export class TokenSigningModule {}
