import { Module } from '@nestjs/common';
import { OrganizationsRepository } from './organizations.repository.js';
import { TombstonesRepository } from './tombstones.repository.js';

@Module({
  providers: [OrganizationsRepository, TombstonesRepository],
  exports: [OrganizationsRepository, TombstonesRepository],
})
export class OrganizationsModule {}
