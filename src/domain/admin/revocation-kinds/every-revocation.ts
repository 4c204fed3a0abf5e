import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { Revocable } from '#domain/access-revocation/revocable.js';
import { RegisteredResources } from '#domain/oauth/applications/registered-resources.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuthenticatorsRepository } from '#domain/keys/authenticators/authenticators.repository.js';
import { EnrollmentPassesRepository } from '#domain/keys/enrollment-passes/enrollment-passes.repository.js';
import { GitHubTokenRevocation } from '#domain/github/tokens/github-token-revocation.repository.js';
import { ClientsRepository } from '#domain/oauth/clients/clients.repository.js';
import { SessionsRepository } from '#domain/sessions/sessions.repository.js';
import { CertificateRevocation } from '#domain/ssh/certificate-revocation.repository.js';
import { AttestedKeyRevocation } from '#domain/ssh/hardware-keys/attested-keys.repository.js';

/**
 * The worker that tells GitHub about queued tokens runs in the service: here a token is queued, and
 * nothing is woken.
 */
const ASLEEP = { wakeAfter: () => undefined };

/** Every kind of access. A test compares the list with the classes that implement `Revocable`. */
const KINDS: readonly (() => Revocable)[] = [
  () => new SessionsRepository(),
  () => new CertificateRevocation(),
  () => new AttestedKeyRevocation(),
  () => new GitHubTokenRevocation(ASLEEP),
  () => new ClientsRepository(),
  () => new RegisteredResources(new AuditLog()),
  () => new EnrollmentPassesRepository(),
  () => new AuthenticatorsRepository(),
];

/** Puts the end of access together without Nest, with every kind registered. */
export function everyRevocation(): AccessRevocation {
  const revocation = new AccessRevocation();
  for (const kind of KINDS) revocation.register(kind());
  return revocation;
}
