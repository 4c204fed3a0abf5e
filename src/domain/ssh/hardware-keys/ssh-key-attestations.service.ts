import { Inject, Injectable } from '@nestjs/common';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { decideModel } from '#domain/keys/authenticators/model-policy.js';
import type { TrustAnchor } from '@svc/webauthn-policy';
import { TRUST_ANCHORS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/keys/authenticators/ceremony/challenge.js';
import { CodedRefusal, refusedAs } from '#domain/keys/authenticators/ceremony/refusal-detail.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { readSubjectKey } from './subject-key.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { KeyAttestation } from './attested-keys.repository.js';
import { verifyKeyAttestation } from './key-attestation.js';

const PURPOSE = 'ssh-key-attestation';

/** The payload of the encrypted state that a client gets with a challenge and sends back. */
interface ChallengeState {
  readonly challenge: string;
}

/**
 * A challenge that the user gives to `ssh-keygen -O challenge=FILE`, so that the attestation is
 * new.
 */
export interface AttestationChallenge {
  /** The content of the file: 32 random bytes. */
  readonly challenge: Buffer;
  /**
   * The sealed state, which the client sends back with the attestation. The state is valid once,
   * and only in the session for which it was made.
   */
  readonly state: string;
  readonly expiresInSeconds: number;
}

/** An attestation from a client, over a challenge of this service. */
export interface PresentedAttestation {
  readonly state: string;
  /** The bytes of the file that `ssh-keygen -O write-attestation=FILE` wrote. */
  readonly file: Buffer;
}

/**
 * Verifies that SSH keys are inside security keys. The rules are those of the enrollment of a
 * security key: the pinned root certificates of the vendor, and the models that the deployment
 * allows.
 */
@Injectable()
export class SshKeyAttestations {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'enrollment'>,
    @Inject(TRUST_ANCHORS) private readonly anchors: readonly TrustAnchor[],
    private readonly states: SingleUseStates,
    private readonly clock: Clock,
  ) {}

  /** Makes a challenge that is bound to a session, so that no other session can use it. */
  async challenge(sessionId: string): Promise<AttestationChallenge> {
    const challenge = newChallenge();
    const payload: ChallengeState = { challenge: challenge.toString('base64url') };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: bindingOf(sessionId),
      ttlSeconds: CEREMONY_SECONDS,
    });
    return { challenge, state, expiresInSeconds: CEREMONY_SECONDS };
  }

  /**
   * Spends the challenge, so that it works once, and verifies the attestation of an SSH key.
   *
   * @param publicKey a line as in a `.pub` file
   * @throws DomainError `invalid_public_key`, `invalid_state`, `attestation_rejected` or
   *   `model_not_allowed`
   */
  async verify(
    sessionId: string,
    publicKey: string,
    { state, file }: PresentedAttestation,
  ): Promise<KeyAttestation> {
    const key = readSubjectKey(publicKey);
    const payload = await this.states.redeem<ChallengeState>(PURPOSE, state, {
      binding: bindingOf(sessionId),
    });
    const challenge = Buffer.from(payload.challenge, 'base64url');
    return refusedAs('attestation_rejected', () => {
      const trust = { anchors: this.anchors, now: this.clock.now() };
      const proven = verifyKeyAttestation({ key, file, challenge }, trust);
      const model = decideModel(this.config.enrollment.allowedAaguids, proven.aaguid);
      if (!model.allowed) throw new CodedRefusal('model_not_allowed', model.reason);
      return { ...proven, model: modelName(proven.aaguid) };
    });
  }
}

function bindingOf(sessionId: string): string {
  return `session ${sessionId}`;
}
