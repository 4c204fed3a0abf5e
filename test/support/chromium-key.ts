import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import { parse as uuidBytes } from 'uuid';
import type { TestApp } from './app.js';

/** A credential as the DevTools protocol writes it: bytes in base64. */
export interface ChromiumCredential {
  readonly credentialId: string;
  readonly rpId: string;
  readonly userHandle: string;
  readonly privateKey: string;
  readonly isResidentCredential: true;
  readonly signCount: number;
}

/** Puts Chromium's own virtual security key into the machine: what it answers is the browser's work, not ours. */
export async function addChromiumKey(page: Page, credential?: ChromiumCredential): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  if (credential) await devtools.send('WebAuthn.addCredential', { authenticatorId, credential });
}

/** Swaps the key that a person has enrolled for one that {@link addChromiumKey} can hold: it could not enroll itself. */
export async function giveCredentialTo(app: TestApp, email: string): Promise<ChromiumCredential> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const credentialId = randomBytes(32);
  const pem = publicKey.export({ format: 'pem', type: 'spki' });
  const [rows] = await app.dataSource.query<[{ user_id: string }[], number]>(
    `UPDATE authenticators SET credential_id = $1, public_key = $2, sign_count = 0
     FROM users WHERE users.id = user_id AND email = $3 RETURNING user_id`,
    [credentialId, pem, email],
  );
  const [owner] = rows;
  if (!owner) throw new Error(`${email} has enrolled no key`);
  return {
    credentialId: credentialId.toString('base64'),
    rpId: app.config.relyingParty.id,
    userHandle: Buffer.from(uuidBytes(owner.user_id)).toString('base64'),
    privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
    isResidentCredential: true,
    signCount: 1,
  };
}
