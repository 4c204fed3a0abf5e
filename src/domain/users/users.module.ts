import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuthenticatorsModule } from '#domain/authenticators/authenticators.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { ActingAdmin } from './acting-admin.service.js';
import { Assertions } from './assertions.service.js';
import { ChangeEmail } from './change-email.service.js';
import { ClaimAdmin } from './claim-admin.service.js';
import { Deprovision } from './deprovision.service.js';
import { Enroll } from './enroll.service.js';
import { EnrollmentPolicy } from './enrollment-policy.service.js';
import { LogIn } from './log-in.service.js';
import { LogOut } from './log-out.service.js';
import { ManageKeys } from './manage-keys.service.js';
import { ManageMembers } from './manage-members.service.js';
import { ManageSessions } from './manage-sessions.service.js';
import { MakePerson } from './make-person.service.js';
import { MembersRepository } from './members.repository.js';
import { RefusedEnrollments } from './refused-enrollments.service.js';
import { ResolvePerson } from './resolve-person.service.js';
import { SignIn } from './sign-in.service.js';
import { SyntheticLogIn } from './synthetic-log-in.service.js';
import { UsersRepository } from './users.repository.js';

/**
 * People: who signs in upstream, how they come to exist (with their first key, never before), how they log in with it.
 * A row of users is locked before anything that belongs to it: the order that keeps concurrent acts from deadlock.
 */
@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    AuthenticatorsModule,
    OrganizationsModule,
    SessionsModule,
  ],
  providers: [
    ActingAdmin,
    Assertions,
    ChangeEmail,
    ClaimAdmin,
    Deprovision,
    Enroll,
    EnrollmentPolicy,
    LogIn,
    LogOut,
    ManageKeys,
    ManageMembers,
    ManageSessions,
    MakePerson,
    MembersRepository,
    RefusedEnrollments,
    ResolvePerson,
    SignIn,
    SyntheticLogIn,
    UsersRepository,
  ],
  exports: [
    ActingAdmin,
    Deprovision,
    Enroll,
    EnrollmentPolicy,
    LogIn,
    LogOut,
    ManageKeys,
    ManageMembers,
    ManageSessions,
    RefusedEnrollments,
    SignIn,
    SyntheticLogIn,
  ],
})
export class UsersModule {}
