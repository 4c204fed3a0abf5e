import { createPublicKey } from 'node:crypto';
import type { KeySpec } from '@aws-sdk/client-kms';
import { MOTO_CREDENTIALS } from './moto.js';

/**
 * Actions on KMS keys that only an administrator of the AWS account needs, and the service does not
 * use.
 */
export interface KmsAdmin {
  /**
   * Creates a key of this type, and returns its id. The default of `usage` is the one that fits the
   * type.
   */
  create(spec: KeySpec, usage?: KeyUsage): Promise<string>;
  /** Returns the public key in PEM. */
  publicPem(keyId: string): Promise<string>;
  disable(keyId: string): Promise<void>;
  enable(keyId: string): Promise<void>;
}

type KeyUsage = 'SIGN_VERIFY' | 'ENCRYPT_DECRYPT' | 'GENERATE_VERIFY_MAC';

function usageOf(spec: string): KeyUsage {
  if (spec.startsWith('HMAC')) return 'GENERATE_VERIFY_MAC';
  return spec === 'SYMMETRIC_DEFAULT' ? 'ENCRYPT_DECRYPT' : 'SIGN_VERIFY';
}

/** Returns an administrator of the keys in a stand-in for KMS. */
export async function kmsAdmin(endpoint: string): Promise<KmsAdmin> {
  const kms = await import('@aws-sdk/client-kms');
  const client = new kms.KMSClient({
    endpoint,
    region: MOTO_CREDENTIALS.AWS_REGION,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  return {
    async create(spec, usage = usageOf(spec)) {
      const command = new kms.CreateKeyCommand({ KeySpec: spec, KeyUsage: usage });
      const { KeyMetadata } = await client.send(command);
      if (KeyMetadata?.KeyId === undefined) throw new Error('no key was created');
      return KeyMetadata.KeyId;
    },
    async publicPem(keyId) {
      const { PublicKey } = await client.send(new kms.GetPublicKeyCommand({ KeyId: keyId }));
      const key = Buffer.from(PublicKey ?? []);
      return createPublicKey({ key, format: 'der', type: 'spki' })
        .export({ type: 'spki', format: 'pem' })
        .toString();
    },
    async disable(keyId) {
      await client.send(new kms.DisableKeyCommand({ KeyId: keyId }));
    },
    async enable(keyId) {
      await client.send(new kms.EnableKeyCommand({ KeyId: keyId }));
    },
  };
}

/**
 * Sets the variables with which the AWS SDK of this process calls moto, the stand-in for AWS. The
 * returned function restores them.
 */
export function useMotoCredentials(): () => void {
  const before = Object.keys(MOTO_CREDENTIALS).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, MOTO_CREDENTIALS);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}
