import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { Revocable } from '#domain/access-revocation/revocable.js';
import { RegisteredResources } from '#domain/applications/registered-resources.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/authenticators/authenticators.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { UsersRepository } from '#domain/directory/users.repository.js';
import { EnrollmentPassesRepository } from '#domain/enrollment-passes/enrollment-passes.repository.js';
import { GitHubTokenRevocation } from '#domain/github-tokens/github-token-revocation.repository.js';
import { ApplicationsRepository } from '#domain/grants/clients/applications.repository.js';
import { ClientsRepository } from '#domain/grants/clients/clients.repository.js';
import { DomainOwnership } from '#domain/organization-domains/domain-ownership.service.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import { SessionsRepository } from '#domain/sessions/sessions.repository.js';
import { CertificateRevocation } from '#domain/ssh-certificates/certificate-revocation.repository.js';
import { AttestedKeyRevocation } from '#domain/ssh-certificates/hardware-keys/attested-keys.repository.js';
import { systemClock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { OperatorAccess } from './operator-access.js';
import { OperatorDomains } from './operator-domains.js';

/** The worker that tells GitHub about queued tokens runs in the service: here a token is queued, and nothing is woken. */
const ASLEEP = { wakeAfter: () => undefined };

/** Every kind of access. A test compares the list with the classes that implement `Revocable`. */
const KINDS: readonly (() => Revocable)[] = [
  () => new SessionsRepository(),
  () => new CertificateRevocation(),
  () => new AttestedKeyRevocation(),
  () => new GitHubTokenRevocation(ASLEEP),
  () => new ClientsRepository(),
  () => new RegisteredResources(new ApplicationsRepository(), new AuditLog()),
  () => new EnrollmentPassesRepository(),
  () => new AuthenticatorsRepository(),
];

function everyRevocation(): AccessRevocation {
  const revocation = new AccessRevocation();
  for (const kind of KINDS) revocation.register(kind());
  return revocation;
}

/** Puts the acts of the operator on domains together on a database. */
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

/** Puts the acts of the operator on people together on a database, without KMS, identity providers or any key of the service. */
export function operatorAccess(dataSource: DataSource): OperatorAccess {
  const revocation = everyRevocation();
  const users = new UsersRepository();
  const organizations = new OrganizationsRepository();
  const audit = new AuditLog();
  const directory = new UserDirectory(
    { enrollment: { bootstrapAdmins: undefined }, upstream: { providers: [] } },
    users,
    organizations,
    new TombstonesRepository(),
    revocation,
    audit,
  );
  const passes = new EnrollmentPassesRepository();
  return new OperatorAccess({ dataSource, users, organizations, directory, passes, audit });
}
