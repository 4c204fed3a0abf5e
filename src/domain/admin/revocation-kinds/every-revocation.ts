import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { Revocable } from '#domain/access-revocation/revocable.js';
import { RegisteredResources } from '#domain/oauth/applications/registered-resources.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  ApiTokenRevocation,
  DemotedApiTokens,
} from '#domain/directory/api-tokens/ended-api-tokens.repository.js';
import { AuthenticatorsRepository } from '#domain/keys/authenticators/authenticators.repository.js';
import { EnrollmentPassesRepository } from '#domain/keys/enrollment-passes/enrollment-passes.repository.js';
import { GitHubTokenRevocation } from '#domain/github/tokens/github-token-revocation.repository.js';
import { ClientsRepository } from '#domain/oauth/clients/clients.repository.js';
import { EventReceiverRevocation } from '#domain/oauth/event-receivers/ended-receivers.repository.js';
import { EndedAccounts } from '#domain/oauth/logout-notices/ended-accounts.repository.js';
import { SignalledEnds } from '#domain/oauth/shared-signals/signalled-ends.repository.js';
import { SessionsRepository } from '#domain/sessions/sessions.repository.js';
import { CertificateRevocation } from '#domain/ssh/certificate-revocation.repository.js';
import { AttestedKeyRevocation } from '#domain/ssh/hardware-keys/attested-keys.repository.js';

/**
 * A stand-in for the object that wakes the worker for queued GitHub tokens. The code that uses this
 * file has no such worker. The worker of the running service reads the queue every few seconds
 * without being woken.
 */
const ASLEEP = { wakeAfter: () => undefined };

/**
 * Every kind of access that a revocation ends. The order of this list has no effect, because
 * `access-revocation/revocation-order` decides which kind ends first. A test compares the list with
 * the classes that implement `Revocable`.
 */
const KINDS: readonly (() => Revocable)[] = [
  () => new SignalledEnds(),
  () => new EndedAccounts(),
  () => new SessionsRepository(),
  () => new CertificateRevocation(),
  () => new AttestedKeyRevocation(),
  () => new GitHubTokenRevocation(ASLEEP),
  () => new ClientsRepository(),
  () => new RegisteredResources(new AuditLog()),
  () => new ApiTokenRevocation(new AuditLog()),
  () => new DemotedApiTokens(new AuditLog()),
  () => new EnrollmentPassesRepository(),
  () => new EventReceiverRevocation(new AuditLog()),
  () => new AuthenticatorsRepository(),
];

/**
 * Makes an {@link AccessRevocation} without the Nest container, with every kind of access
 * registered.
 */
export function everyRevocation(): AccessRevocation {
  const revocation = new AccessRevocation();
  for (const kind of KINDS) revocation.register(kind());
  return revocation;
}
