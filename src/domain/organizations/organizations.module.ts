import { Module } from '@nestjs/common';
import { OrganizationsRepository } from './organizations.repository.js';

/** Who belongs together, which domains they own, and whom they accept sign-ins from. */
@Module({ providers: [OrganizationsRepository], exports: [OrganizationsRepository] })
export class OrganizationsModule {}
