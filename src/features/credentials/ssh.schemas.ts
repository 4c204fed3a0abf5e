import { z } from 'zod';
import type { IssuedCertificate } from '#domain/ssh-certificates/certificate-issuance.service.js';
import type { KeyAttestation } from '#domain/ssh-certificates/hardware-keys/attested-keys.repository.js';
import type { AttestationChallenge } from '#domain/ssh-certificates/hardware-keys/ssh-key-attestations.service.js';

/** The body of `POST /v1/credentials/ssh`. */
export const SSH_REQUEST = z.object({
  public_key: z.string(),
  principals: z.array(z.string().max(255)).max(16).optional(),
  ttl_seconds: z.int().positive().optional(),
  attestation: z
    .object({ state: z.string().max(2048), data: z.string().max(8192).transform(readBase64) })
    .optional(),
});
export type SshRequest = z.output<typeof SSH_REQUEST>;

/** The answer of `POST /v1/credentials/ssh`. */
export interface SshJson {
  readonly certificate: string;
  /** Decimal: JSON numbers are not safe for what clients may do with 64 bits. */
  readonly serial: string;
  readonly key_id: string;
  readonly principals: readonly string[];
  /** The validity: both times are RFC 3339 in whole seconds. */
  readonly valid_after: string;
  readonly valid_before: string;
  readonly ca_public_key: string;
  /** Only for a key that is proven to live in a security key. */
  readonly attestation?: {
    readonly aaguid: string | null;
    readonly model: string | null;
    readonly verify_required: boolean;
  };
}

/** The answer of `POST /v1/credentials/ssh/challenge`. */
export interface SshChallengeJson {
  /** Base64 of the 32 bytes that the file of `ssh-keygen -O challenge=FILE` holds. */
  readonly challenge: string;
  readonly state: string;
  /** Seconds. */
  readonly expires_in: number;
}

/** Renders a challenge. */
export function challengeJson(issued: AttestationChallenge): SshChallengeJson {
  return {
    challenge: issued.challenge.toString('base64'),
    state: issued.state,
    expires_in: issued.expiresInSeconds,
  };
}

/** Renders an issued certificate. */
export function sshJson(issued: IssuedCertificate): SshJson {
  return {
    certificate: issued.certificate,
    serial: issued.serial.toString(),
    key_id: issued.keyId,
    principals: issued.principals,
    valid_after: rfc3339(issued.validAfter),
    valid_before: rfc3339(issued.validBefore),
    ca_public_key: issued.caPublicKey,
    ...(issued.attestation && { attestation: attestationJson(issued.attestation) }),
  };
}

function attestationJson({ aaguid, model, verifyRequired }: KeyAttestation) {
  return { aaguid, model, verify_required: verifyRequired };
}

/** Reads base64 or base64url, with or without padding. Node.js skips other characters: they are refused. */
function readBase64(text: string, context: z.RefinementCtx): Buffer {
  const bytes = Buffer.from(text, 'base64');
  const plain = text
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/={1,2}$/, '');
  if (bytes.toString('base64').replace(/={1,2}$/, '') === plain) return bytes;
  context.addIssue({ code: 'custom', message: 'must be base64' });
  return z.NEVER;
}

function rfc3339(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}
