import { Module } from '@nestjs/common';
import { OrganizationsRepository } from './organizations.repository.js';
import { TombstonesRepository } from './tombstones.repository.js';

/** Organizations: their domains, the providers they accept, and the people that SCIM removed from them. */
@Module({
  providers: [OrganizationsRepository, TombstonesRepository],
  exports: [OrganizationsRepository, TombstonesRepository],
})
export class OrganizationsModule {}
