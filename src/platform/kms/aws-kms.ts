/**
 * This file alone imports `@aws-sdk/client-kms`. The service uses six calls of the library, its
 * signatures of requests (SigV4) and its search for credentials. The retries of the library are
 * off, because `kms-calls.ts` decides about them with an injected clock. Its errors become
 * `KmsFault`. The library is loaded only if a key of KMS is configured, because it costs start-up
 * time and memory.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { getCACertificates } from 'node:tls';
import type { KMSClient, KMSClientConfig, SigningAlgorithmSpec } from '@aws-sdk/client-kms';
import type { SignerAlgorithm } from '#platform/crypto/signer.js';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import type { KeyFacts } from './key-check.js';
import { KmsFault } from './kms-fault.js';

/**
 * Public pairs of names and values to which a data key is bound. KMS decrypts the data key only if
 * the same pairs are sent.
 */
export type EncryptionContext = Readonly<Record<string, string>>;

/**
 * A new data key, a symmetric key that encrypts data outside of KMS. It is in plain text for use at
 * once, and encrypted by KMS for storage.
 */
export interface DataKey {
  readonly plaintext: Buffer;
  readonly encrypted: Buffer;
}

/** The settings of the connections to KMS. */
export interface KmsConnection {
  /** The URL of KMS; undefined for the URL of AWS in the region. */
  readonly endpoint: string | undefined;
  /** PEM certificates of authorities that are trusted in addition to those of Node.js. */
  readonly extraCaCerts: readonly string[];
}

/**
 * The largest number of connections to one region. Further requests wait for one of them, within
 * their time limit.
 */
const MOST_SOCKETS = 50;

const ALGORITHMS: Readonly<Record<SignerAlgorithm, SigningAlgorithmSpec>> = {
  ES256: 'ECDSA_SHA_256',
  RS256: 'RSASSA_PKCS1_V1_5_SHA_256',
  Ed25519: 'ED25519_SHA_512',
};

type Library = typeof import('@aws-sdk/client-kms');

/**
 * Makes the calls of AWS KMS that the service uses. A failed call rejects with the error of the
 * SDK.
 */
export class AwsKms {
  readonly #clients = new Map<string | undefined, KMSClient>();

  private constructor(
    private readonly library: Library,
    private readonly connection: KmsConnection,
  ) {}

  /** Loads the AWS SDK. The first call opens a connection. */
  static async load(connection: KmsConnection): Promise<AwsKms> {
    return new AwsKms(await import('@aws-sdk/client-kms'), connection);
  }

  /**
   * Returns what KMS states about a key. The result names the key by its ARN (the full name in
   * AWS), even if `keyId` is an alias.
   */
  async describe(keyId: string, abortSignal: AbortSignal): Promise<KeyFacts> {
    const command = new this.library.DescribeKeyCommand({ KeyId: keyId });
    const { KeyMetadata: key } = await this.#client(keyId).send(command, { abortSignal });
    return {
      arn: key?.Arn ?? keyId,
      state: key?.KeyState ?? '',
      usage: key?.KeyUsage ?? '',
      spec: key?.KeySpec ?? '',
      algorithms: key?.SigningAlgorithms ?? [],
    };
  }

  /** Returns the public key, a SubjectPublicKeyInfo in DER (RFC 5280). */
  async publicKey(keyId: string, abortSignal: AbortSignal): Promise<Buffer> {
    const command = new this.library.GetPublicKeyCommand({ KeyId: keyId });
    return bytes((await this.#client(keyId).send(command, { abortSignal })).PublicKey);
  }

  /**
   * Signs a message. The signature of ES256 is in DER.
   * @param message the whole message for Ed25519; its SHA-256 digest for ES256 and RS256
   */
  async sign(
    keyId: string,
    alg: SignerAlgorithm,
    message: Buffer,
    abortSignal: AbortSignal,
  ): Promise<Buffer> {
    const command = new this.library.SignCommand({
      KeyId: keyId,
      Message: message,
      MessageType: alg === 'Ed25519' ? 'RAW' : 'DIGEST',
      SigningAlgorithm: ALGORITHMS[alg],
    });
    return bytes((await this.#client(keyId).send(command, { abortSignal })).Signature);
  }

  /** Computes the HMAC-SHA-256 of a text under a key. */
  async mac(keyId: string, text: string, abortSignal: AbortSignal): Promise<Buffer> {
    const command = new this.library.GenerateMacCommand({
      KeyId: keyId,
      Message: Buffer.from(text),
      MacAlgorithm: 'HMAC_SHA_256',
    });
    return bytes((await this.#client(keyId).send(command, { abortSignal })).Mac);
  }

  /** Makes a new data key of 256 bits, which KMS also encrypts under a key and the context. */
  async newDataKey(
    keyId: string,
    context: EncryptionContext,
    abortSignal: AbortSignal,
  ): Promise<DataKey> {
    const command = new this.library.GenerateDataKeyCommand({
      KeyId: keyId,
      KeySpec: 'AES_256',
      EncryptionContext: { ...context },
    });
    const { Plaintext, CiphertextBlob } = await this.#client(keyId).send(command, { abortSignal });
    return { plaintext: bytes(Plaintext), encrypted: bytes(CiphertextBlob) };
  }

  /** Decrypts a data key that the key of KMS encrypted under the same context. */
  async decryptDataKey(
    keyId: string,
    encrypted: Buffer,
    context: EncryptionContext,
    abortSignal: AbortSignal,
  ): Promise<Buffer> {
    const command = new this.library.DecryptCommand({
      KeyId: keyId,
      CiphertextBlob: encrypted,
      EncryptionContext: { ...context },
    });
    return bytes((await this.#client(keyId).send(command, { abortSignal })).Plaintext);
  }

  /**
   * Returns the client for the region of a key's ARN. For any other id, the region comes from the
   * configuration of the SDK.
   */
  #client(keyId: string): KMSClient {
    const region = /^arn:[^:]+:kms:([^:]+):/.exec(keyId)?.[1];
    const known = this.#clients.get(region);
    if (known !== undefined) return known;
    const client = new this.library.KMSClient(this.#settings(region));
    refuseCleartext(client);
    this.#clients.set(region, client);
    return client;
  }

  #settings(region: string | undefined): KMSClientConfig {
    const { endpoint, extraCaCerts } = this.connection;
    const sockets = { keepAlive: true, maxSockets: MOST_SOCKETS };
    const ca = [...getCACertificates('default'), ...extraCaCerts];
    return {
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
      maxAttempts: 1,
      requestHandler: {
        httpAgent: new HttpAgent(sockets),
        httpsAgent: new HttpsAgent({ ...sockets, ca }),
      },
    };
  }
}

/**
 * Makes a client refuse requests over http, except to a loopback host. The SDK may take an http
 * endpoint from its own files, which the configuration of this service never checks.
 */
function refuseCleartext(client: KMSClient): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const { protocol, hostname } = args.request as { protocol: string; hostname: string };
      if (!isHttpsOrLoopback(`${protocol}//${hostname}`)) {
        throw new KmsFault('refused', 'the URL of KMS must be https (http only for localhost)');
      }
      return next(args);
    },
    { step: 'build', name: 'refuseCleartext' },
  );
}

/**
 * Returns a field of a response as bytes.
 * @throws Error if KMS left the field out, or sent it empty
 */
function bytes(field: Uint8Array | undefined): Buffer {
  if (field === undefined || field.length === 0) throw new Error('KMS left out a field');
  return Buffer.from(field);
}
