import type { CommandContext } from '../command/command-context.js';
import { CLIENT_ID } from '../login/new-token.js';
import { CliFailure, notLoggedIn } from '../program/failure.js';
import { accepted, documentOf } from '../server/server-client.js';
import { readToken } from '../server/stored-token.js';
import { ensureCertificateFor } from '../ssh/host-certificate.js';
import { runInPlace } from '../child/in-place.js';

/**
 * `svc git sign`: signs as `ssh-keygen -Y sign` does. First it gets a certificate if no valid one
 * is stored. Git runs it by the program that `svc setup git --sign` wrote.
 *
 * @param args the arguments of `ssh-keygen`, unchanged
 * @returns the exit status of `ssh-keygen`; that of the failure if no valid certificate can be had
 */
export async function sign(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    await ensureCertificateFor(context, context.server(), undefined);
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    context.terminal.warn(`svc: ${error.line}`);
    return error.status;
  }
  return runInPlace('ssh-keygen', args, 'Install the OpenSSH client.');
}

/**
 * The public URLs of the two files with which git verifies the signatures of the members of an
 * organization.
 */
export interface SignatureAddresses {
  /** The URL of the file for `gpg.ssh.allowedSignersFile`. */
  readonly allowed_signers: string;
  /** The URL of the file for `gpg.ssh.revocationFile`. */
  readonly revoked_signatures: string;
}

/** The fields of the answer to an introspection (RFC 7662) that the command reads. */
interface Introspection {
  readonly active?: boolean;
  readonly org_id?: string;
}

/**
 * Returns the public URLs of the two files with which git verifies the signatures of the members of
 * the user's organization.
 *
 * @throws CliFailure without a login, and for a user without an organization
 */
export async function signatureAddresses(context: CommandContext): Promise<SignatureAddresses> {
  const client = await context.client();
  const token = readToken(context.folder(), 'token')?.access_token;
  const answer = accepted(await client.form('/oauth/introspect', { client_id: CLIENT_ID, token }));
  const { active, org_id: id } = documentOf(answer) as Introspection;
  if (active !== true) throw notLoggedIn();
  if (id === undefined || !/^[0-9a-f-]{36}$/.test(id)) {
    throw new CliFailure('You belong to no organization.', 'Ask an admin to add you.');
  }
  const base = `${context.server()}/v1/credentials/ssh`;
  return {
    allowed_signers: `${base}/allowed_signers/${id}`,
    revoked_signatures: `${base}/krl/signatures`,
  };
}
