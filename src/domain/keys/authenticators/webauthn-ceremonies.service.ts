import { Inject, Injectable } from '@nestjs/common';
import { Fido2Lib } from './attestation/fido2-library.js';
import type { z } from 'zod';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  checkAuthenticatorData,
  ES256,
  readAttestationObject,
  Refusal,
  registerAttestationFormats,
  type AttestationFormat,
  type FieldMap,
  type SignalFields,
  type TrustAnchor,
} from '@svc/webauthn-policy';
import { TOUCH_SECONDS } from './ceremony/challenge.js';
import { readClientData } from './ceremony/client-data.js';
import { verifyFormat, orDevicePasskey } from './ceremony/device-passkey.js';
import { verifyNativeAssertion } from './ceremony/native-assertion.js';
import { CodedRefusal, refusalDetail, refusedAs } from './ceremony/refusal-detail.js';
import { decideModel } from './model-policy.js';
import { TRUST_ANCHORS } from './attestation/trust-anchors.js';
import {
  AUTHENTICATION_RESPONSE,
  REGISTRATION_RESPONSE,
  type AuthenticationResponse,
  type CreationOptionsJSON,
  type RequestOptionsJSON,
  type UserVerification,
} from './ceremony/webauthn-json.js';

/** The new credential of a security key whose attestation was verified. */
export interface VerifiedRegistration {
  readonly credentialId: Buffer;
  /** The public key in PEM (SPKI). */
  readonly publicKey: string;
  readonly signCount: number;
  readonly attestation: AttestationFormat;
  /** The AAGUID of the model, as the attestation certificate states it. */
  readonly aaguid: string | null;
  /** True if the key verified its user (PIN, fingerprint) in this ceremony. */
  readonly userVerified: boolean;
  /** False for a U2F key, which can prove that it was touched but never verifies its user. */
  readonly canVerifyUser: boolean;
  readonly transports: string[];
}

/**
 * The result of a verified assertion (the signature of a security key in a login). The caller
 * compares the counter in SQL, because two logins may happen at once.
 */
export interface VerifiedAssertion {
  readonly signCount: number;
  readonly userVerified: boolean;
}

/**
 * An assertion (the signature of a security key in a login) to verify, with the stored facts of its
 * key.
 */
export interface AssertionCeremony {
  /** An `AuthenticationResponseJSON` that is not parsed yet. */
  readonly credential: unknown;
  readonly challenge: Buffer;
  /** The public key in PEM (SPKI). */
  readonly publicKey: string;
  readonly credentialId: Buffer;
  /**
   * The bytes of the user id that is stored in the key (user handle). A response with another user
   * handle is refused. A response may lack the user handle if the user was identified before the
   * ceremony (WebAuthn §7.2 step 6), unless `requireUserHandle` is set.
   */
  readonly userHandle: Buffer | null;
  readonly requireUserHandle?: boolean;
  readonly requireUserVerification: boolean;
  /**
   * The origin in the client data of a native client such as a command line; undefined if a page of
   * the service asked for the assertion.
   */
  readonly nativeOrigin?: string;
}

/**
 * Verifies registrations and assertions of security keys (WebAuthn §7.1, §7.2). First, strict
 * parsers refuse bytes that two parsers could read differently. Then `fido2-lib` runs the ceremony.
 * The library calls the attestation policy of this service, because no other attestation formats
 * are registered in it.
 */
@Injectable()
export class WebAuthnCeremonies {
  readonly #library = new Fido2Lib();

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(TRUST_ANCHORS) private readonly anchors: readonly TrustAnchor[],
  ) {
    registerAttestationFormats(Fido2Lib);
  }

  /**
   * Returns the options of a registration, which the page gives to
   * `PublicKeyCredential.parseCreationOptionsFromJSON`.
   */
  creationOptions(ceremony: {
    readonly challenge: Buffer;
    readonly user: { readonly id: Buffer; readonly name: string; readonly displayName: string };
    /**
     * The credential ids of the user's keys, so that the browser does not enroll one of them again.
     */
    readonly excludeCredentialIds: readonly Buffer[];
  }): CreationOptionsJSON {
    const { id, name } = this.config.relyingParty;
    return {
      rp: { id, name },
      user: { ...ceremony.user, id: ceremony.user.id.toString('base64url') },
      challenge: ceremony.challenge.toString('base64url'),
      pubKeyCredParams: [{ type: 'public-key', alg: ES256 }],
      timeout: TOUCH_SECONDS * 1000,
      excludeCredentials: ceremony.excludeCredentialIds.map((credentialId) => ({
        type: 'public-key',
        id: credentialId.toString('base64url'),
      })),
      // Verification of the user and a discoverable credential are preferred and not required,
      // because a U2F key supports neither and may still enroll.
      authenticatorSelection: {
        authenticatorAttachment: 'cross-platform',
        residentKey: 'preferred',
        requireResidentKey: false,
        userVerification: 'preferred',
      },
      attestation: 'direct',
      hints: ['security-key'],
    };
  }

  /**
   * Returns the options of an assertion, which the page gives to
   * `PublicKeyCredential.parseRequestOptionsFromJSON`. Without `allowCredentials`, the key itself
   * chooses the credential (a discoverable one).
   */
  requestOptions(ceremony: {
    readonly challenge: Buffer;
    readonly allowCredentials?: readonly { readonly id: Buffer; readonly transports: string[] }[];
    readonly userVerification: UserVerification;
  }): RequestOptionsJSON {
    return {
      challenge: ceremony.challenge.toString('base64url'),
      timeout: TOUCH_SECONDS * 1000,
      rpId: this.config.relyingParty.id,
      allowCredentials: (ceremony.allowCredentials ?? []).map(({ id, transports }) => ({
        type: 'public-key',
        id: id.toString('base64url'),
        transports,
      })),
      userVerification: ceremony.userVerification,
      hints: ['security-key'],
    };
  }

  /**
   * Verifies a registration, the attestation in it and the model of the key (WebAuthn §7.1).
   *
   * @param ceremony `credential` is an unparsed `RegistrationResponseJSON`; `challenge` is the
   *   challenge of the ceremony; `now` is the time at which certificates must be valid
   * @throws DomainError `attestation_rejected`, or `device_passkey`, `attestation_missing` or
   *   `model_not_allowed` for a reason that the page explains
   */
  verifyRegistration(ceremony: {
    readonly credential: unknown;
    readonly challenge: Buffer;
    readonly now: Date;
  }): Promise<VerifiedRegistration> {
    return refusedAs('attestation_rejected', async () => {
      const credential = read(REGISTRATION_RESPONSE, ceremony.credential);
      const { id, response } = credential;
      readClientData(response.clientDataJSON);
      const attestationObject = readAttestationObject(response.attestationObject);
      verifyFormat(attestationObject, credential);

      const decision: { aaguid?: string | null } = {};
      const { authnrData } = await orDevicePasskey(credential, () => {
        checkAuthenticatorData(attestationObject.authenticatorData, 'registration');
        return this.#library.attestationResult(
          {
            rawId: arrayBuffer(id),
            response: {
              clientDataJSON: arrayBuffer(response.clientDataJSON),
              attestationObject: arrayBuffer(response.attestationObject),
            },
            trust: { anchors: this.anchors, now: ceremony.now },
            decision,
          },
          { ...this.expected(ceremony.challenge), factor: 'second' },
        );
      });
      const { aaguid } = decision;
      if (aaguid === undefined) throw new Refusal('The attestation was not verified.');
      const model = decideModel(this.config.enrollment.allowedAaguids, aaguid);
      if (!model.allowed) throw new CodedRefusal('model_not_allowed', model.reason);

      const attestation = authnrData.get('fmt');
      const canVerifyUser = attestation !== 'fido-u2f';
      const { signCount, userVerified } = signals(authnrData);
      return {
        credentialId: id,
        publicKey: authnrData.get('credentialPublicKeyPem'),
        attestation,
        aaguid,
        signCount,
        // A U2F key signs no flags at registration (WebAuthn §8.6), so the client could set any
        // flag. Therefore the flag is ignored for such a key.
        userVerified: canVerifyUser && userVerified,
        canVerifyUser,
        transports: response.transports,
      };
    });
  }

  /**
   * Verifies an assertion (the signature of a security key in a login) with the stored public key
   * (WebAuthn §7.2). The caller checks the signature counter. `fido2-lib` verifies an assertion for
   * a page, and {@link verifyNativeAssertion} one for a native client.
   *
   * @throws DomainError `assertion_rejected`, with the reason
   */
  verifyAssertion(ceremony: AssertionCeremony): Promise<VerifiedAssertion> {
    return refusedAs('assertion_rejected', async () => {
      const credential = read(AUTHENTICATION_RESPONSE, ceremony.credential);
      const { response } = credential;
      if (ceremony.requireUserHandle && !response.userHandle?.length) {
        throw new Refusal('The response does not identify a user: the user handle is missing.');
      }
      const clientData = readClientData(response.clientDataJSON);
      checkAuthenticatorData(response.authenticatorData, 'assertion');
      if (ceremony.nativeOrigin === undefined) return this.#verifyOfPage(credential, ceremony);
      const { nativeOrigin: origin } = ceremony;
      const { id: rpId } = this.config.relyingParty;
      return verifyNativeAssertion(credential, clientData, { ...ceremony, origin, rpId });
    });
  }

  async #verifyOfPage(
    { id, response }: AuthenticationResponse,
    ceremony: AssertionCeremony,
  ): Promise<VerifiedAssertion> {
    const { authnrData } = await this.#library.assertionResult(
      {
        rawId: arrayBuffer(id),
        response: {
          clientDataJSON: arrayBuffer(response.clientDataJSON),
          authenticatorData: arrayBuffer(response.authenticatorData),
          signature: arrayBuffer(response.signature),
          userHandle: response.userHandle ? arrayBuffer(response.userHandle) : undefined,
        },
      },
      {
        ...this.expected(ceremony.challenge),
        factor: ceremony.requireUserVerification ? 'first' : 'second',
        publicKey: ceremony.publicKey,
        userHandle: ceremony.userHandle?.toString('base64url') ?? null,
        allowCredentials: [{ type: 'public-key', id: arrayBuffer(ceremony.credentialId) }],
        // With zero as the previous counter, the check of the library always passes. The caller
        // compares the counter in SQL instead, because two logins may happen at once.
        prevCounter: 0,
      },
    );
    return signals(authnrData);
  }

  private expected(challenge: Buffer): { origin: string; rpId: string; challenge: string } {
    return {
      origin: this.config.http.baseUrl,
      rpId: this.config.relyingParty.id,
      challenge: challenge.toString('base64url'),
    };
  }
}

/**
 * Reads the credential id of an assertion that is not verified yet, so that the caller can find its
 * key.
 *
 * @param credential an unparsed `AuthenticationResponseJSON`
 * @throws DomainError `assertion_rejected` if it is malformed
 */
export function credentialIdOf(credential: unknown): Buffer {
  try {
    return read(AUTHENTICATION_RESPONSE, credential).id;
  } catch (cause) {
    throw new DomainError('assertion_rejected', refusalDetail(cause), { cause });
  }
}

function read<Schema extends z.ZodType>(schema: Schema, credential: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(credential);
  if (!error) return data;
  const [issue] = error.issues;
  const where = ['credential', ...(issue?.path ?? [])].map(String).join('.');
  throw new Refusal(`${where} is malformed: ${issue?.message ?? 'not a credential'}.`);
}

/** Reads the signature counter from authenticator data, and whether the key verified its user. */
function signals(authnrData: FieldMap<SignalFields>): VerifiedAssertion {
  return {
    signCount: authnrData.get('counter'),
    userVerified: authnrData.get('flags').has('UV'),
  };
}

/** Copies bytes into an ArrayBuffer, because the library accepts nothing else. */
function arrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
