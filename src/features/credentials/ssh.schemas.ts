import { z } from 'zod';
import type { IssuedCertificate } from '#domain/ssh-certificates/certificate-issuance.service.js';

/** The body of `POST /v1/credentials/ssh`. */
export const SSH_REQUEST = z.object({
  public_key: z.string(),
  principals: z.array(z.string().max(255)).max(16).optional(),
  ttl_seconds: z.int().positive().optional(),
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
  };
}

function rfc3339(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}
