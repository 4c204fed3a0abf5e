import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandContext } from '../command/command-context.js';
import { makeKeyPair, storedPublicKey } from './key-pair.js';
import { storeAnswer, type CertificateAnswer, type SshChoices } from './renewal.js';
import { recordIssued } from './stored-certificate.js';

/** Returns true if an SSH public key belongs to a private key inside a security key. */
export function isSecurityKey(publicKey: string | undefined): boolean {
  return publicKey?.startsWith('sk-') === true;
}

/**
 * Makes an SSH key inside a security key, and proves that to the server: `ssh-keygen` writes an
 * attestation for a challenge of the server, and the server answers the attestation with the first
 * certificate.
 */
export async function makeSecurityKey(
  context: CommandContext,
  server: string,
  { principals }: SshChoices,
): Promise<void> {
  const folder = context.folder(server);
  const client = await context.client();
  await folder.withLock('ssh', async () => {
    if (isSecurityKey(storedPublicKey(folder))) return;
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
        answer = await client.post<CertificateAnswer>('/v1/credentials/ssh', {
          public_key: readFileSync(join(made, 'id.pub'), 'utf8').trim(),
          attestation: { state, data: readFileSync(join(made, 'attestation'), 'base64') },
          ...(principals && { principals }),
        });
      },
    ).finally(() => folder.remove('ssh/challenge'));
    recordIssued(folder, String(answer.certificate));
    storeAnswer(folder, answer);
  });
}
