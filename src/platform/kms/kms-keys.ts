import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { systemRandom, type Random } from '#platform/clock/random.js';
import type { Config, KmsKeySetting } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import {
  algorithmOf,
  isSignatureOf,
  rawEcdsaSignature,
  type Signer,
  type SignerAlgorithm,
} from '#platform/crypto/signer.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { AwsKms, type DataKey, type EncryptionContext } from './aws-kms.js';
import { KMS_LIMITS, type KmsLimits } from './call-policy.js';
import { isForSignatures, keyProblem } from './key-check.js';
import { KmsCalls, secondsToWait, type KmsAttempt } from './kms-calls.js';
import { faultOf, KmsFault } from './kms-fault.js';

/** A configured key, as AWS KMS described it at start-up. */
interface CheckedKey {
  /**
   * The ARN of the key. If the configuration names an alias, and the alias is moved to another key
   * later, the service uses this key until its next start.
   */
  readonly arn: string;
  /** The public key; undefined for a key that does not sign. */
  readonly publicKey: KeyObject | undefined;
}

/** The parts of the configuration that KMS needs. */
type KmsConfig = {
  readonly kms: Config['kms'];
  readonly upstream: Pick<Config['upstream'], 'extraCaCerts'>;
};

/** The limits of calls to AWS KMS, and their clock and random numbers, which tests replace. */
export interface KmsOptions {
  readonly limits?: KmsLimits;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * The keys in AWS KMS that the configuration names. Each key is checked once at start-up. Later, a
 * failure of KMS becomes the error `kms_unavailable`: 503 with the seconds after which a client may
 * try again.
 */
export class KmsKeys {
  readonly #keys = new Map<string, CheckedKey>();
  readonly #calls: KmsCalls;

  private constructor(
    private readonly aws: AwsKms | undefined,
    { limits = KMS_LIMITS, clock = systemClock, random = systemRandom }: KmsOptions,
  ) {
    this.#calls = new KmsCalls(limits, clock, random);
  }

  /**
   * Checks that each configured key exists, is enabled and fits its use. Without a configured key,
   * the AWS SDK is not loaded.
   *
   * @throws ConfigProblems with one line for each variable whose key does not fit
   */
  static async open({ kms, upstream }: KmsConfig, options: KmsOptions = {}): Promise<KmsKeys> {
    if (kms.keys.length === 0) return new KmsKeys(undefined, options);
    const { endpoint } = kms;
    const aws = await AwsKms.load({ endpoint, extraCaCerts: upstream.extraCaCerts });
    const keys = new KmsKeys(aws, options);
    const problems = await Promise.all(kms.keys.map((setting) => keys.#check(setting)));
    const found = problems.filter((problem) => problem !== undefined);
    if (found.length > 0) throw new ConfigProblems([...new Set(found)]);
    return keys;
  }

  /**
   * Returns the signer of a configured key. The signer verifies each signature with the public key
   * that KMS gave at start-up.
   *
   * @param algs the algorithms that the caller can use
   */
  signer(keyId: string, ...algs: readonly SignerAlgorithm[]): Signer {
    const { arn, publicKey } = this.#checked(keyId);
    const alg = publicKey && algorithmOf(publicKey);
    if (publicKey === undefined || alg === undefined || !algs.includes(alg)) {
      throw new Error(`the key does not sign by ${algs.join(' or ')}`);
    }
    const sign = async (message: Buffer): Promise<Buffer> => {
      const payload = alg === 'Ed25519' ? message : hash('sha256', message, 'buffer');
      return this.#call(arn, async (aws, signal) => {
        const encoded = await aws.sign(arn, alg, payload, signal);
        const signature = alg === 'ES256' ? rawEcdsaSignature(encoded) : encoded;
        // A wrong signature means that another server answers as KMS, or that another key signed.
        // The client must not get it in a credential.
        if (!isSignatureOf({ alg, publicKey }, message, signature)) throw wrongSignature();
        return signature;
      });
    };
    return { alg, publicKey, sign };
  }

  /**
   * Computes the HMAC-SHA-256 of a text under a configured key.
   *
   * @throws DomainError `kms_unavailable`
   */
  generateMac(keyId: string, text: string): Promise<Buffer> {
    const { arn } = this.#checked(keyId);
    return this.#call(arn, (aws, signal) => aws.mac(arn, text, signal));
  }

  /**
   * Makes a data key of 256 bits, encrypted under a configured key.
   *
   * @throws DomainError `kms_unavailable`
   */
  generateDataKey(keyId: string, context: EncryptionContext): Promise<DataKey> {
    const { arn } = this.#checked(keyId);
    return this.#call(arn, (aws, signal) => aws.newDataKey(arn, context, signal));
  }

  /**
   * Decrypts a data key that was made under the same configured key and the same context.
   *
   * @param blob the encrypted data key
   * @throws DomainError `kms_unavailable`
   * @throws KmsFault of the kind `input` if the blob was encrypted under another key or context
   */
  decryptDataKey(keyId: string, blob: Buffer, context: EncryptionContext): Promise<Buffer> {
    const { arn } = this.#checked(keyId);
    return this.#call(arn, (aws, signal) => aws.decryptDataKey(arn, blob, context, signal), true);
  }

  /**
   * Checks that a configured key exists and fits its use.
   * @returns the problem of a key that does not fit, in one line; undefined for a key that fits
   */
  async #check({ variable, keyId, use }: KmsKeySetting): Promise<string | undefined> {
    try {
      const facts = await this.#run(keyId, (aws, signal) => aws.describe(keyId, signal));
      const problem = keyProblem(use, facts);
      if (problem !== undefined) return `${variable}: ${problem}`;
      const { arn } = facts;
      const publicKey = isForSignatures(use) ? await this.#publicKey(arn) : undefined;
      this.#keys.set(keyId, { arn, publicKey });
      return undefined;
    } catch (error) {
      return `${variable}: ${faultOf(error).message}`;
    }
  }

  async #publicKey(arn: string): Promise<KeyObject> {
    const der = await this.#run(arn, (aws, signal) => aws.publicKey(arn, signal));
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  }

  #checked(keyId: string): CheckedKey {
    const key = this.#keys.get(keyId);
    if (key === undefined) throw new Error('a key of KMS is used that the configuration lacks');
    return key;
  }

  /**
   * Calls AWS KMS while a client waits for a response. A fault becomes the error `kms_unavailable`.
   *
   * @param takesBlob true for a call that sends bytes that KMS encrypted. Only such a call can fail
   *   because of what it sends
   */
  async #call<T>(
    arn: string,
    attempt: (aws: AwsKms, signal: AbortSignal) => Promise<T>,
    takesBlob = false,
  ): Promise<T> {
    try {
      return await this.#run(arn, attempt);
    } catch (error) {
      if (!(error instanceof KmsFault) || (takesBlob && error.kind === 'input')) throw error;
      throw new DomainError('kms_unavailable', 'The key service does not answer. Try again.', {
        cause: error,
        retryAfter: secondsToWait(error),
      });
    }
  }

  #run<T>(keyId: string, attempt: (aws: AwsKms, signal: AbortSignal) => Promise<T>): Promise<T> {
    const { aws } = this;
    if (aws === undefined) throw new Error('no key of KMS is configured');
    const once: KmsAttempt<T> = (signal) => attempt(aws, signal);
    return this.#calls.run(keyId, once);
  }
}

function wrongSignature(): KmsFault {
  return new KmsFault(
    'failing',
    'KMS answers with a signature that the public key does not verify',
  );
}
