import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import { deniedSession } from '#domain/sessions/access-token.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import type { RememberedSession } from '#domain/sessions/session-access-policy.service.js';
import {
  CertificateIssuance,
  type AskedCertificate,
  type IssuedCertificate,
} from '#domain/ssh/certificate-issuance.service.js';
import type { KeyAttestation } from '#domain/ssh/hardware-keys/attested-keys.repository.js';
import type { Unconfirmed } from '#platform/http/access/unconfirmed.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { Caller, UnconfirmedRequest } from '#platform/http/access/caller.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { SshKeyAttestations } from '#domain/ssh/hardware-keys/ssh-key-attestations.service.js';
import {
  challengeJson,
  SSH_CHALLENGE_JSON,
  SSH_JSON,
  SSH_REQUEST,
  sshJson,
  type SshChallengeJson,
  type SshJson,
  type SshRequest,
} from './ssh.schemas.js';

/**
 * `POST /v1/credentials/ssh`: issues an SSH user certificate for a public key of the caller. The
 * certificate ends with the caller's session at the latest.
 */
@Controller('v1/credentials/ssh')
@Route({
  tier: 'issuance',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS,
})
export class SshController {
  constructor(
    private readonly certificates: CertificateIssuance,
    private readonly attestations: SshKeyAttestations,
    private readonly metrics: ServiceMetrics,
  ) {}

  /**
   * Gives a challenge that the attestation of a key must contain, so that no attestation is
   * accepted twice.
   */
  @Post('challenge')
  @Route({
    operation: 'createSshChallenge',
    summary: 'Gives a challenge for `ssh-keygen -O challenge=FILE`',
    answers: { 200: SSH_CHALLENGE_JSON },
  })
  @HttpCode(200)
  async challenge(@Caller() session: VerifiedSession): Promise<SshChallengeJson> {
    return challengeJson(await this.attestations.challenge(session.id));
  }

  @Post()
  @Route({
    admission: 'within',
    operation: 'issueSshCertificate',
    summary: 'Issues an SSH user certificate',
    answers: { 200: SSH_JSON },
    refusals: [
      'issuance_refused',
      'account_inactive',
      'kms_unavailable',
      'invalid_public_key',
      'principal_not_allowed',
      'too_many_principals',
      'not_assigned',
      'browser_required',
      'insufficient_user_authentication',
      'hardware_ssh_key_required',
      'invalid_state',
      'attestation_rejected',
      'model_not_allowed',
    ],
  })
  @HttpCode(200)
  async issue(
    @Caller() caller: VerifiedSession,
    @Body({ schema: SSH_REQUEST }) body: SshRequest,
    @ClientOrigin() origin: AuditOrigin,
    @UnconfirmedRequest() unconfirmed: Unconfirmed | undefined,
  ): Promise<SshJson> {
    let issued = unconfirmed && (await this.#issueUnchecked(unconfirmed, body, origin));
    if (!issued) {
      const session = (unconfirmed ? await unconfirmed.confirm() : caller) as VerifiedSession;
      const { state, data } = body.attestation ?? {};
      const attestation =
        state !== undefined && data !== undefined
          ? await this.attestations.verify(session.id, body.public_key, { state, file: data })
          : undefined;
      issued = await this.certificates.issue(askedOf(session, { ...body, attestation }, origin));
    }
    this.metrics.countIssued('ssh');
    return sshJson(issued);
  }

  /**
   * Issues a certificate by one statement, which also finds the session again and counts the
   * request in its rate limit.
   *
   * @returns undefined if nothing was issued, so that the caller and its limit must be decided
   *   first
   */
  async #issueUnchecked(
    unconfirmed: Unconfirmed,
    body: SshRequest,
    origin: AuditOrigin,
  ): Promise<IssuedCertificate | undefined> {
    const remembered = unconfirmed.caller as RememberedSession | undefined;
    const { limit } = unconfirmed;
    if (body.attestation || !remembered?.token) return undefined;
    const session = remembered.session as VerifiedSession;
    if (session.user.email === null) return undefined; // the account may have an address by now
    const asked = askedOf(session, { ...body, attestation: undefined }, origin);
    const bucket = limit?.begin();
    if (limit && bucket === undefined) return undefined;
    const unchecked = { token: remembered.token, bucket };
    return this.certificates.issueUnchecked(asked, unchecked, (row) => {
      if (row?.debt !== undefined) limit?.noteAdmitted(row.debt);
      remembered.proofIsSpent = row?.is_spent === true;
      if (row?.denial === null) {
        unconfirmed.noteConfirmed({ ...session, unreadNotice: row.notice ?? null });
      }
    });
  }
}

/**
 * Returns a request for a certificate as the domain reads it.
 *
 * @throws DomainError issuance_refused for an account without an e-mail address
 */
function askedOf(
  session: VerifiedSession,
  body: Omit<SshRequest, 'attestation'> & { readonly attestation: KeyAttestation | undefined },
  origin: AuditOrigin,
): AskedCertificate {
  const { id: userId, email } = session.user;
  if (email === null) {
    throw new DomainError('issuance_refused', 'This account has no e-mail address.');
  }
  return {
    session: { sessionId: session.id, userId, email, denied: deniedSession(session) },
    request: {
      publicKey: body.public_key,
      principals: body.principals,
      host: body.host,
      ttlSeconds: body.ttl_seconds,
      attestation: body.attestation,
    },
    origin,
  };
}
