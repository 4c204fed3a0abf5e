import type { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/keys/authenticators/authenticators.repository.js';
import { RecordEnds } from '#domain/directory/record-ends.service.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { UsersRepository } from '#domain/directory/users.repository.js';
import { EnrollmentPassesRepository } from '#domain/keys/enrollment-passes/enrollment-passes.repository.js';
import { ClientsRepository } from '#domain/oauth/clients/clients.repository.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { everyRevocation } from '../../revocation-kinds/every-revocation.js';

/** The repositories and services with which `redoAct` repeats a lost act. */
export interface RedoParts {
  readonly accessRevocation: AccessRevocation;
  readonly audit: AuditLog;
  readonly clients: ClientsRepository;
  readonly directory: UserDirectory;
  readonly ends: RecordEnds;
  readonly keys: AuthenticatorsRepository;
  readonly organizations: OrganizationsRepository;
  readonly passes: EnrollmentPassesRepository;
  readonly users: UsersRepository;
}

/**
 * Makes the repositories and services with which `redo` repeats acts, such as the removal of a
 * user. The database server lost their commits in a failover. The function does not use the Nest
 * container, because no other part of the service may run on a server that is not confirmed yet.
 */
export function redoParts(): RedoParts {
  const accessRevocation = everyRevocation();
  const audit = new AuditLog();
  const users = new UsersRepository();
  const organizations = new OrganizationsRepository();
  const directory = new UserDirectory(
    { enrollment: { bootstrapAdmins: undefined }, upstream: { providers: [] } },
    users,
    organizations,
    accessRevocation,
    audit,
  );
  return {
    accessRevocation,
    audit,
    clients: new ClientsRepository(),
    directory,
    ends: new RecordEnds(users, directory, accessRevocation),
    keys: new AuthenticatorsRepository(),
    organizations,
    passes: new EnrollmentPassesRepository(),
    users,
  };
}
