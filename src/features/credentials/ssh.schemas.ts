import { z } from 'zod';
import type { IssuedCertificate } from '#domain/ssh/certificate-issuance.service.js';
import type { KeyAttestation } from '#domain/ssh/hardware-keys/attested-keys.repository.js';
import type { AttestationChallenge } from '#domain/ssh/hardware-keys/ssh-key-attestations.service.js';

/** The body of `POST /v1/credentials/ssh`. */
export const SSH_REQUEST = z
  .object({
    public_key: z.string().describe('The public key, as in a `.pub` file.'),
    principals: z
      .array(z.string().max(255))
      .max(256)
      .optional()
      .describe(
        'Login names for the certificate: some of those that the user has; all unless stated.',
      ),
    host: z
      .string()
      .regex(/^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$/, 'must be a host name or an address')
      .optional()
      .describe(
        'The host to connect to: the certificate has the names of its groups of hosts alone.',
      ),
    ttl_seconds: z
      .int()
      .positive()
      .optional()
      .describe('The wanted validity in seconds. The service may give less.'),
    attestation: z
      .object({
        state: z.string().max(2048).describe('The `state` of the challenge.'),
        data: z
          .string()
          .max(8192)
          .transform(readBase64)
          .describe('The file of `ssh-keygen -O write-attestation=FILE`, in base64.'),
      })
      .optional()
      .describe('The proof that the key is in a security key.'),
  })
  .describe('A public key, and what its certificate is to have.');
export type SshRequest = z.output<typeof SSH_REQUEST>;

/** The answer of `POST /v1/credentials/ssh`. */
export const SSH_JSON = z
  .object({
    certificate: z.string().describe('The certificate, as in a `-cert.pub` file.'),
    serial: z.string().meta({
      description: 'Decimal: JSON numbers are not safe for what clients may do with 64 bits.',
    }),
    key_id: z.string().describe('The key id in the certificate, which sshd logs.'),
    principals: z.array(z.string()).readonly().describe('The login names in the certificate.'),
    valid_after: z.iso
      .datetime()
      .meta({ description: 'The validity: both times are RFC 3339 in whole seconds.' }),
    valid_before: z.iso.datetime().describe('The end of the validity.'),
    ca_public_key: z.string().describe('The public key of the authority that signed it.'),
    host_groups: z
      .array(
        z.object({
          name: z.string().describe('The name of the group.'),
          hosts: z.array(z.string()).readonly().describe('The patterns of its host names.'),
          carried: z.boolean().describe('True if the certificate opens these hosts.'),
        }),
      )
      .readonly()
      .meta({
        description:
          'The groups of hosts that you reach, in an organization that has any, for a request without `host`. `carried` is false if the session does not meet the conditions of the group now.',
      })
      .exactOptional(),
    touch_needed: z
      .literal(true)
      .meta({
        description:
          'Present if the certificate lacks a group of hosts that admits you, and a newer touch of the security key would add it. Log in again, and ask for another certificate.',
      })
      .exactOptional(),
    attestation: z
      .object({
        aaguid: z.string().nullable().describe('The AAGUID of the model of the security key.'),
        model: z.string().nullable().describe('The name of the model; null for an unknown one.'),
        verify_required: z.boolean().describe('True if the key verifies its user at each use.'),
      })
      .meta({ description: 'Only for a key that is proven to live in a security key.' })
      .exactOptional(),
  })
  .meta({ id: 'SshCertificate', description: 'An SSH user certificate.' });
/** The type of the answer of `POST /v1/credentials/ssh`, by which the compiler checks answers. */
export type SshJson = z.output<typeof SSH_JSON>;

/** The answer of `POST /v1/credentials/ssh/challenge`. */
export const SSH_CHALLENGE_JSON = z
  .object({
    challenge: z.string().meta({
      description: 'Base64 of the 32 bytes that the file of `ssh-keygen -O challenge=FILE` holds.',
    }),
    state: z.string().describe('The state to send back with the attestation.'),
    expires_in: z.int().describe('The seconds until the challenge expires.'),
  })
  .meta({ id: 'SshChallenge', description: 'A challenge for the attestation of an SSH key.' });
/**
 * The type of the answer of `POST /v1/credentials/ssh/challenge`, by which the compiler checks
 * answers.
 */
export type SshChallengeJson = z.output<typeof SSH_CHALLENGE_JSON>;

/** Renders a challenge as JSON: its bytes in base64, and its lifetime in seconds. */
export function challengeJson(issued: AttestationChallenge): SshChallengeJson {
  return {
    challenge: issued.challenge.toString('base64'),
    state: issued.state,
    expires_in: issued.expiresInSeconds,
  };
}

/**
 * Renders an issued certificate as JSON. The serial number is a decimal text, because JSON numbers
 * are exact only up to 2^53.
 */
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
    ...(issued.touchNeeded && { touch_needed: true as const }),
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
