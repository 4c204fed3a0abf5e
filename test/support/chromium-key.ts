import { generateKeyPairSync, hash, randomBytes, sign } from 'node:crypto';
import type { Page } from 'playwright-core';
import { parse as uuidBytes } from 'uuid';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import { attestationObject } from '@svc/stand-ins/authenticator-messages';
import type { TestApp } from './app.js';

/**
 * The offset of the AAGUID in the authenticator data of a registration (WebAuthn §6.5.1). The
 * AAGUID names the key's model.
 */
const AAGUID_AT = 37;

/** The part of Chromium's `RegistrationResponseJSON` that an attestation changes or needs. */
interface ChromiumRegistration {
  readonly response: { readonly authenticatorData: string; readonly clientDataJSON: string };
}

/** A credential in the form of Chromium's DevTools protocol, with bytes in base64. */
export interface ChromiumCredential {
  readonly credentialId: string;
  readonly rpId: string;
  readonly userHandle: string;
  readonly privateKey: string;
  readonly isResidentCredential: true;
  readonly signCount: number;
}

/**
 * Options of Chromium's virtual security key. For example, with `internal` the key is a part of the
 * computer, and without user verification it has no PIN.
 */
export interface ChromiumAuthenticator {
  readonly transport?: 'usb' | 'internal';
  readonly hasResidentKey?: boolean;
  readonly hasUserVerification?: boolean;
  readonly isUserVerified?: boolean;
}

/**
 * Adds Chromium's own virtual security key to a page. Its responses are made by the browser and not
 * by code of the tests.
 */
export async function addChromiumKey(
  page: Page,
  credential?: ChromiumCredential,
  different: ChromiumAuthenticator = {},
): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      ...different,
    },
  });
  if (credential) await devtools.send('WebAuthn.addCredential', { authenticatorId, credential });
}

/**
 * Attests Chromium's virtual keys as keys of a vendor and a model, which Chromium itself does not
 * do.
 */
export class ChromiumKeyVendor {
  readonly #now = new Date();
  readonly #root = issueAuthority('Chromium Key Attestation Root', this.#now);

  /** The attestation root in PEM that the service has to trust. */
  get rootPem(): string {
    return this.#root.pem;
  }

  /**
   * Replaces the attestation of new credentials in this page by one of this vendor, and leaves the
   * rest of the response.
   */
  async attest(page: Page, aaguid: string): Promise<void> {
    const model = Buffer.from(aaguid.replaceAll('-', ''), 'hex');
    const leaf = issueAttestationLeaf(model, this.#now, this.#root);
    await page.exposeFunction('attestKey', ({ response, ...credential }: ChromiumRegistration) => {
      const authData = Buffer.from(response.authenticatorData, 'base64url');
      model.copy(authData, AAGUID_AT);
      const clientData = Buffer.from(response.clientDataJSON, 'base64url');
      const signed = Buffer.concat([authData, hash('sha256', clientData, 'buffer')]);
      const statement = new Map<string, unknown>([
        ['alg', -7],
        ['sig', sign('sha256', signed, leaf.privateKey)],
        ['x5c', [leaf.der]],
      ]);
      const object = attestationObject('packed', statement, authData);
      return {
        ...credential,
        response: { ...response, attestationObject: object.toString('base64url') },
      };
    });
    await page.addInitScript(`{
      const create = navigator.credentials.create.bind(navigator.credentials);
      navigator.credentials.create = async (options) => {
        const made = await create(options);
        const attested = await attestKey(made.toJSON());
        return { toJSON: () => attested };
      };
    }`);
  }
}

/**
 * Replaces the enrolled key of a user by a credential for {@link addChromiumKey}. The user cannot
 * enroll it, because the service does not trust the attestation of Chromium's key.
 */
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
