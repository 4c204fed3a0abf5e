import { AuditLog } from '#domain/audit/audit.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { UsersRepository } from '#domain/directory/users.repository.js';
import { EnrollmentPassesRepository } from '#domain/keys/enrollment-passes/enrollment-passes.repository.js';
import { DomainOwnership } from '#domain/organizations/domains/domain-ownership.service.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { everyRevocation } from '../revocation-kinds/every-revocation.js';
import { systemClock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { OperatorAccess } from './operator-access.js';
import { OperatorDomains } from './operator-domains.js';

/** Makes an {@link OperatorDomains} for a command that has only a database. */
export function operatorDomains(dataSource: DataSource): OperatorDomains {
  const organizations = new OrganizationsRepository();
  const ownership = new DomainOwnership(
    organizations,
    everyRevocation(),
    new AuditLog(),
    systemClock,
    systemRandom,
  );
  return new OperatorDomains({ dataSource, organizations, ownership });
}

/**
 * Makes an {@link OperatorAccess} for a command that has only a database: no KMS, no identity
 * providers and no key of the service.
 */
export function operatorAccess(dataSource: DataSource): OperatorAccess {
  const revocation = everyRevocation();
  const users = new UsersRepository();
  const organizations = new OrganizationsRepository();
  const audit = new AuditLog();
  const directory = new UserDirectory(
    { enrollment: { bootstrapAdmins: undefined }, upstream: { providers: [] } },
    users,
    organizations,
    revocation,
    audit,
  );
  const passes = new EnrollmentPassesRepository();
  return new OperatorAccess({ dataSource, users, organizations, directory, passes, audit });
}
