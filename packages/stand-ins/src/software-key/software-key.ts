import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { systemClock, systemRandom } from '../clock.js';
import { issueAttestationLeaf, issueAuthority } from './attestation-authority.js';
import {
  assertionSignature,
  attestationObject,
  attestationStatement,
  authenticatorData,
  clientDataJSON,
  FLAG,
  type SimulatedFormat,
} from './authenticator-messages.js';
import type { GeneratedCertificate } from './certificates.js';
import type {
  CeremonyAnswer,
  CreateOptions,
  GetOptions,
  KeyAssertion,
  KeyRegistration,
  PinDemand,
} from './ceremony-messages.js';

export type {
  CreateOptions,
  GetOptions,
  KeyAssertion,
  KeyRegistration,
} from './ceremony-messages.js';

/** The AAGUID of the software key by default. It belongs to no vendor. */
const SOFTWARE_AAGUID = 'c0ffee00-5f70-4a7e-8e1d-50f7a4e0ce01';

/** The options of a new software key, which has no credentials unless `state` has some. */
export interface SoftwareKeyOptions {
  /**
   * The format of the attestation. `fido-u2f` makes a key like the first generation: it has no PIN
   * and no discoverable credentials, and its attestation names no model.
   */
  readonly format?: SimulatedFormat;
  /** The model of the key, a UUID. */
  readonly aaguid?: string;
  /** The time at which the key's certificates are issued; the present by default. */
  readonly now?: Date;
  /**
   * Another software key, whose attestation root also attests this key, as a vendor's root attests
   * all its keys.
   */
  readonly vendor?: SoftwareKey;
  /** The state of an earlier key. The new key continues with its credentials and its counter. */
  readonly state?: SoftwareKeyState;
}

/**
 * The state by which a later key continues an earlier one. The attestation root is not included,
 * because it is new in each run.
 */
export interface SoftwareKeyState {
  readonly signCount: number;
  /** The credentials, the oldest first. `id` is in base64url, and `privateKey` is PKCS#8 PEM. */
  readonly credentials: readonly {
    readonly id: string;
    readonly rpId: string;
    readonly userHandle: string;
    /** The name of the account. The browser shows it if the key has several accounts. */
    readonly userName?: string | undefined;
    readonly privateKey: string;
  }[];
}

/** An account of a key, as the browser shows it if the user chooses one. */
export interface KeyAccount {
  /** The user handle in base64url. */
  readonly userHandle: string;
  readonly name: string;
}

interface Credential {
  readonly id: Buffer;
  readonly rpId: string;
  /** The user handle in base64url. */
  readonly userHandle: string;
  readonly userName?: string | undefined;
  readonly privateKey: KeyObject;
}

/**
 * A security key in software, for the demo and the tests. It returns the responses that
 * `navigator.credentials` returns in a browser. Its attestation root exists only in this process,
 * so a service accepts the key only if it was told to trust {@link rootPem}.
 */
export class SoftwareKey {
  readonly #format: SimulatedFormat;
  readonly #aaguid: Buffer;
  readonly #root: GeneratedCertificate;
  readonly #leaf: GeneratedCertificate;
  /** The attestation certificates that the root of this key has issued for other keys, by model. */
  readonly #batches = new Map<string, GeneratedCertificate>();
  readonly #credentials: Credential[];
  /** The signature counter at the last use. Each use adds one. */
  signCount: number;

  constructor(options: SoftwareKeyOptions = {}) {
    const now = options.now ?? systemClock.now();
    this.#format = options.format ?? 'packed';
    this.#aaguid = Buffer.from((options.aaguid ?? SOFTWARE_AAGUID).replaceAll('-', ''), 'hex');
    this.#root = options.vendor
      ? options.vendor.#root
      : issueAuthority('Software Key Attestation Root', now);
    this.#leaf =
      options.vendor && options.now === undefined
        ? options.vendor.#leafOf(this)
        : this.#newLeaf(now);
    const { signCount, credentials } = options.state ?? { signCount: 0, credentials: [] };
    this.signCount = signCount;
    this.#credentials = credentials.map(({ id, privateKey, ...rest }) => ({
      ...rest,
      id: Buffer.from(id, 'base64url'),
      privateKey: createPrivateKey(privateKey),
    }));
  }

  /** The attestation root as PEM, for a service that has to trust it. */
  get rootPem(): string {
    return this.#root.pem;
  }

  /** The state with which a later key can continue. */
  get state(): SoftwareKeyState {
    const credentials = this.#credentials.map(({ id, privateKey, ...rest }) => ({
      ...rest,
      id: id.toString('base64url'),
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    }));
    return { signCount: this.signCount, credentials };
  }

  /**
   * The accounts of the key's credentials, the newest first. If several accounts have one name,
   * only the newest is listed, because an account may have been deleted and created again.
   */
  get accounts(): KeyAccount[] {
    const named = this.#credentials.toReversed().flatMap(({ userHandle, userName }) => {
      return userName === undefined ? [] : [{ userHandle, name: userName }];
    });
    return [...Map.groupBy(named, ({ name }) => name).values()].flatMap(([newest]) => newest ?? []);
  }

  /**
   * Creates a credential, as `navigator.credentials.create()` does in a page of `origin`.
   *
   * @throws Error if the key has one of the excluded credentials, or ES256 is not offered
   */
  create(options: CreateOptions, origin: string): KeyRegistration {
    const excluded = new Set(options.excludeCredentials.map(({ id }) => id));
    if (this.#credentials.some(({ id }) => excluded.has(id.toString('base64url')))) {
      throw new Error('InvalidStateError: this key is registered already');
    }
    if (!options.pubKeyCredParams.some(({ alg }) => alg === -7)) {
      throw new Error('NotSupportedError: this key speaks ES256 only');
    }
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const credential = {
      aaguid: this.#format === 'packed' ? this.#aaguid : Buffer.alloc(16),
      credentialId: systemRandom.bytes(32),
      publicKey,
    };
    this.#credentials.push({
      id: credential.credentialId,
      rpId: options.rp.id,
      userHandle: options.user.id,
      userName: options.user.name,
      privateKey,
    });
    const clientData = clientDataJSON('webauthn.create', options.challenge, origin);
    const flags = this.#flags(options.authenticatorSelection.userVerification);
    const authData = authenticatorData(options.rp.id, flags, this.#nextCount(), credential);
    const statement = attestationStatement(
      this.#format,
      this.#leaf.privateKey,
      [this.#leaf.der],
      authData,
      clientData,
      credential,
    );
    return {
      ...envelope(credential.credentialId),
      response: {
        clientDataJSON: clientData.toString('base64url'),
        attestationObject: attestationObject(this.#format, statement, authData).toString(
          'base64url',
        ),
        transports: ['usb'],
      },
    };
  }

  /**
   * Signs a challenge, as `navigator.credentials.get()` does in a page of `origin`. It uses the
   * newest allowed credential, or the newest discoverable one if the options name none.
   *
   * @throws Error if the key has no such credential
   */
  get(options: GetOptions, origin: string): KeyAssertion {
    const isU2f = this.#format === 'fido-u2f';
    const allowed = new Set(options.allowCredentials.map(({ id }) => id));
    const credential = this.#credentials.findLast(
      ({ id, rpId, userHandle }) =>
        rpId === options.rpId &&
        (options.account === undefined || options.account === userHandle) &&
        (allowed.size === 0 ? !isU2f : allowed.has(id.toString('base64url'))),
    );
    if (!credential) throw new Error('NotAllowedError: this key has no such credential');
    const clientData = clientDataJSON('webauthn.get', options.challenge, origin);
    const flags = this.#flags(options.userVerification);
    const authData = authenticatorData(options.rpId, flags, this.#nextCount());
    const signature = assertionSignature(credential.privateKey, authData, clientData);
    return {
      ...envelope(credential.id),
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: authData.toString('base64url'),
        signature: signature.toString('base64url'),
        ...(!isU2f && { userHandle: credential.userHandle }),
      },
    };
  }

  #newLeaf(now: Date): GeneratedCertificate {
    return issueAttestationLeaf(this.#aaguid, now, this.#root);
  }

  /**
   * Returns the attestation certificate for another key with this key's root. All keys of one model
   * share a certificate, as WebAuthn §14.4.1 demands for the privacy of users.
   */
  #leafOf(key: SoftwareKey): GeneratedCertificate {
    const model = key.#aaguid.toString('hex');
    const known = this.#batches.get(model) ?? key.#newLeaf(systemClock.now());
    this.#batches.set(model, known);
    return known;
  }

  /**
   * Returns the flags of the authenticator data: user presence always, and user verification if the
   * key has a PIN and the options allow it.
   */
  #flags(userVerification: PinDemand): number {
    const verifies = this.#format === 'packed' && userVerification !== 'discouraged';
    return FLAG.userPresent | (verifies ? FLAG.userVerified : 0);
  }

  #nextCount(): number {
    this.signCount += 1;
    return this.signCount;
  }
}

/** Returns the fields that a registration and an assertion have in common. */
export function envelope(credentialId: Buffer): CeremonyAnswer {
  const id = credentialId.toString('base64url');
  return { id, rawId: id, type: 'public-key', clientExtensionResults: {} };
}
