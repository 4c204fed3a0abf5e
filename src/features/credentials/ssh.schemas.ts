import { z } from 'zod';
import type { IssuedCertificate } from '#domain/ssh/certificate-issuance.service.js';
import type { KeyAttestation } from '#domain/ssh/hardware-keys/attested-keys.repository.js';
import type { AttestationChallenge } from '#domain/ssh/hardware-keys/ssh-key-attestations.service.js';

/** The body of `POST /v1/credentials/ssh`. */
export const SSH_REQUEST = z.object({
  public_key: z.string(),
  principals: z.array(z.string().max(255)).max(256).optional(),
  host: z
    .string()
    .regex(/^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$/, 'must be a host name or an address')
    .optional(),
  ttl_seconds: z.int().positive().optional(),
  attestation: z
    .object({ state: z.string().max(2048), data: z.string().max(8192).transform(readBase64) })
    .optional(),
});
export type SshRequest = z.output<typeof SSH_REQUEST>;

/** The answer of `POST /v1/credentials/ssh`. */
export const SSH_JSON = z
  .object({
    certificate: z.string(),
    serial: z.string().meta({
      description: 'Decimal: JSON numbers are not safe for what clients may do with 64 bits.',
    }),
    key_id: z.string(),
    principals: z.array(z.string()).readonly(),
    valid_after: z.iso
      .datetime()
      .meta({ description: 'The validity: both times are RFC 3339 in whole seconds.' }),
    valid_before: z.iso.datetime(),
    ca_public_key: z.string(),
    host_groups: z
      .array(
        z.object({ name: z.string(), hosts: z.array(z.string()).readonly(), carried: z.boolean() }),
      )
      .readonly()
      .meta({
        description:
          'The groups of hosts that you reach, in an organization that has any, for a request without `host`. `carried` is false if the session does not meet the conditions of the group now.',
      })
      .exactOptional(),
    attestation: z
      .object({
        aaguid: z.string().nullable(),
        model: z.string().nullable(),
        verify_required: z.boolean(),
      })
      .meta({ description: 'Only for a key that is proven to live in a security key.' })
      .exactOptional(),
  })
  .meta({ id: 'SshCertificate' });
/** The type of the answer of `POST /v1/credentials/ssh`. */
export type SshJson = z.output<typeof SSH_JSON>;

/** The answer of `POST /v1/credentials/ssh/challenge`. */
export const SSH_CHALLENGE_JSON = z
  .object({
    challenge: z.string().meta({
      description: 'Base64 of the 32 bytes that the file of `ssh-keygen -O challenge=FILE` holds.',
    }),
    state: z.string(),
    expires_in: z.int().meta({ description: 'Seconds.' }),
  })
  .meta({ id: 'SshChallenge' });
/** The type of the answer of `POST /v1/credentials/ssh/challenge`. */
export type SshChallengeJson = z.output<typeof SSH_CHALLENGE_JSON>;

/** Renders a challenge as JSON. */
export function challengeJson(issued: AttestationChallenge): SshChallengeJson {
  return {
    challenge: issued.challenge.toString('base64'),
    state: issued.state,
    expires_in: issued.expiresInSeconds,
  };
}

/** Renders an issued certificate as JSON. */
export function sshJson(issued: IssuedCertificate): SshJson {
  return {
    certificate: issued.certificate,
    serial: issued.serial.toString(),
    key_id: issued.keyId,
    principals: issued.principals,
    valid_after: rfc3339(issued.validAfter),
    valid_before: rfc3339(issued.validBefore),
    ca_public_key: issued.caPublicKey,
    ...(issued.hostGroups && { host_groups: issued.hostGroups }),
    ...(issued.attestation && { attestation: attestationJson(issued.attestation) }),
  };
}

function attestationJson({ aaguid, model, verifyRequired }: KeyAttestation) {
  return { aaguid, model, verify_required: verifyRequired };
}

/**
 * Decodes base64 or base64url, with or without padding. Any other character is refused, because
 * Node.js would skip it.
 */
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
