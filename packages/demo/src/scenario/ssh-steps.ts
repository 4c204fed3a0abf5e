import { generateKeyPairSync } from 'node:crypto';
import { z } from 'zod';
import {
  isSignedByItsAuthority,
  publicKeyBlob,
  publicKeyLine,
  readCertificate,
  sshFingerprint,
} from '@svc/openssh';
import { systemClock } from '@svc/stand-ins/clock';
import { unexpected } from './http-client.js';
import type { ScenarioContext, StepResult } from './step.js';

const SSH_CREDENTIAL = z.object({
  certificate: z.string(),
  serial: z.string(),
  key_id: z.string(),
  principals: z.array(z.string()),
  valid_after: z.string(),
  valid_before: z.string(),
  ca_public_key: z.string(),
});

/**
 * The milliseconds by which a certificate may outlast the session cookie, because the lifetime of a
 * cookie is cut to whole seconds.
 */
const SECOND = 1000;

/** Generates an SSH key pair and returns the line of its public key. */
export function newPublicKeyLine(email: string): string {
  return publicKeyLine(publicKeyBlob(generateKeyPairSync('ed25519').privateKey), email);
}

/** Gets an SSH certificate for a new key, and stores it in the context for later steps. */
export async function getSshCertificate(context: ScenarioContext): Promise<StepResult> {
  const line = newPublicKeyLine(context.email);
  const body = { public_key: line };
  const ssh = await context.client.postFor('/v1/credentials/ssh', body, SSH_CREDENTIAL);
  context.ssh = ssh;
  return {
    line: `${ssh.key_id}, serial ${ssh.serial}, until ${ssh.valid_before}`,
    result: { public_key: line, ...ssh },
  };
}

/**
 * Checks that the published key of the authority signed the certificate of the previous step. The
 * certificate must be for the user alone, and end no later than the session.
 */
export async function checkSshCertificate(context: ScenarioContext): Promise<StepResult> {
  const { client, email, ssh } = context;
  if (!ssh) throw new Error('there is no certificate to check');
  const response = await client.get('/v1/credentials/ssh/ca');
  if (response.status !== 200) throw unexpected(response);
  const [, authority = ''] = response.body.trim().split(' ');
  const fingerprint = sshFingerprint(Buffer.from(authority, 'base64'));
  const certificate = readCertificate(ssh.certificate);
  const { keyId, principals, extensions, validAfter, validBefore } = certificate;
  const now = systemClock.milliseconds();
  const isSigned = isSignedByItsAuthority(certificate);
  const claims: Record<string, boolean> = {
    'signed by the key the service publishes':
      isSigned && certificate.authority.toString('base64') === authority,
    'for this person alone': certificate.isOfUser && principals.join() === email,
    'valid now': validAfter <= now && validBefore > now,
    'over when the session is': validBefore < client.sessionExpires().getTime() + SECOND,
  };
  const broken = Object.keys(claims).filter((claim) => !claims[claim]);
  if (broken.length > 0) throw new Error(`the certificate is not ${broken.join(', not ')}`);
  return {
    line: `signed by ${fingerprint}, for ${principals.join()} alone, not beyond the session`,
    result: {
      ca_public_key: response.body.trim(),
      ca_fingerprint: fingerprint,
      type: certificate.type,
      key_id: keyId,
      principals,
      valid_after: new Date(validAfter).toISOString(),
      valid_before: new Date(validBefore).toISOString(),
      extensions,
      verified: Object.keys(claims),
    },
  };
}
