import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandContext } from '../command/command-context.js';
import type { ListedHosts } from '../reach/own-reach.js';
import { ServerRefusal } from '../server/server-client.js';
import { hostOfFirstRequest, tooManyNames, trialOf } from './first-request.js';
import { makeKeyPair, storedPublicKey } from './key-pair.js';
import { storeAnswer, type CertificateAnswer, type SshChoices } from './renewal.js';
import { recordIssued } from './stored-certificate.js';

/** Returns true if an SSH public key belongs to a private key inside a security key. */
export function isSecurityKey(publicKey: string | undefined): boolean {
  return publicKey?.startsWith('sk-') === true;
}

/**
 * Makes an SSH key inside a security key, and proves that to the server. `ssh-keygen` writes an
 * attestation for a challenge of the server, which then answers with the first certificate.
 *
 * The server accepts a challenge once, so a refusal would cost another touch. Therefore the command
 * asks before the touch if the names of all groups fit into one certificate. If not, the first
 * certificate is for a host of one group. That certificate is not stored: `svc ssh check` gets one
 * for each host.
 *
 * @param groups the groups of hosts that the server lists for the user
 */
export async function makeSecurityKey(
  context: CommandContext,
  server: string,
  { principals }: SshChoices,
  groups: readonly ListedHosts[],
): Promise<void> {
  const folder = context.folder(server);
  const client = await context.client();
  await folder.withLock('ssh', async () => {
    if (isSecurityKey(storedPublicKey(folder))) return;
    const host = principals
      ? undefined
      : await hostOfFirstRequest(groups, await trialOf(context, folder));
    const { challenge, state } = await client.post<{ challenge: string; state: string }>(
      '/v1/credentials/ssh/challenge',
    );
    context.terminal.warn('Enter the PIN of your security key, and touch it when it blinks.');
    folder.write('ssh/challenge', Buffer.from(challenge, 'base64'));
    const options = [
      '-t',
      'ed25519-sk',
      '-O',
      'verify-required',
      '-O',
      'write-attestation=attestation',
    ];
    let answer: CertificateAnswer = {};
    await makeKeyPair(
      folder,
      [...options, '-O', `challenge=${folder.file('ssh/challenge')}`],
      async (made) => {
        const request = {
          public_key: readFileSync(join(made, 'id.pub'), 'utf8').trim(),
          attestation: { state, data: readFileSync(join(made, 'attestation'), 'base64') },
          ...(principals && { principals }),
          ...(host !== undefined && { host }),
        };
        answer = await client
          .post<CertificateAnswer>('/v1/credentials/ssh', request)
          .catch(explain);
      },
    ).finally(() => folder.remove('ssh/challenge'));
    recordIssued(folder, String(answer.certificate));
    if (host === undefined) storeAnswer(folder, answer);
  });
}

/** Throws a failure again, with what the user can do if a certificate would have too many names. */
function explain(error: unknown): never {
  if (!(error instanceof ServerRefusal) || error.code !== 'too_many_principals') throw error;
  throw tooManyNames(error);
}
