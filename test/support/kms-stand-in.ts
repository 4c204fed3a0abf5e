import {
  constants,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  privateEncrypt,
  randomUUID,
  sign,
} from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** The largest number of bytes that KMS signs with `MessageType: RAW`. */
export const LONGEST_RAW_MESSAGE = 4096;

/** The key types that the stand-in offers. */
type KeySpec = 'ECC_NIST_EDWARDS25519' | 'RSA_3072';

/**
 * A stand-in for AWS KMS with the actions DescribeKey, GetPublicKey and Sign. It has Ed25519 keys,
 * which moto 5.2.5 (a stand-in for all of AWS) lacks. It also has RSA keys. The benchmark of
 * credentials needs them, and loads this file without compiling it.
 */
export interface KmsStandIn {
  readonly endpoint: string;
  /** Creates a key, and returns its ARN. */
  create(spec?: KeySpec): string;
  /** The length in bytes of each message that was signed so far. */
  readonly messages: readonly number[];
  /** The largest number of signatures that were requested at the same time. */
  readonly mostAtOnce: number;
  /**
   * The number of signature requests that must be open before any of them gets its response. The
   * value 0 means that none waits, and setting it to 0 answers the waiting requests.
   */
  gather: number;
  close(): Promise<void>;
}

/** An error by which the stand-in refuses a call. The message is KMS's error code. */
class Refusal extends Error {
  override readonly name = 'Refusal';
}

/**
 * Starts the stand-in on loopback.
 *
 * @param roundTrip the milliseconds by which each answer is delayed, as the network to AWS would
 */
export async function startKmsStandIn(roundTrip = 0): Promise<KmsStandIn> {
  const keys = new Map<string, KeyObject>();
  const messages: number[] = [];
  const held: (() => void)[] = [];
  const counts = { now: 0, most: 0, gather: 0 };

  const releaseAll = (): void => {
    for (const release of held.splice(0)) release();
  };
  const gathered = async (): Promise<void> => {
    counts.now += 1;
    counts.most = Math.max(counts.most, counts.now);
    if (counts.now >= counts.gather) releaseAll();
    else await new Promise<void>((resolve) => held.push(resolve));
    counts.now -= 1;
  };
  const answer = async (request: IncomingMessage): Promise<object> => {
    const body = JSON.parse(await text(request)) as Record<string, string>;
    if (roundTrip > 0) await delay(roundTrip);
    const key = keys.get(body['KeyId'] ?? '');
    if (key === undefined) throw new Refusal('NotFoundException');
    const arn = body['KeyId'] ?? '';
    const action = request.headers['x-amz-target'];
    if (action === 'TrentService.DescribeKey') return { KeyMetadata: metadata(arn, key) };
    if (action === 'TrentService.GetPublicKey') {
      return { ...metadata(arn, key), PublicKey: spki(key) };
    }
    if (action !== 'TrentService.Sign') throw new Refusal('UnknownOperationException');
    const message = Buffer.from(body['Message'] ?? '', 'base64');
    const signature = signatureOf(key, message, body);
    messages.push(message.length);
    await gathered();
    return { KeyId: arn, Signature: signature.toString('base64') };
  };

  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/x-amz-json-1.1');
    answer(request).then(
      (found) => response.end(JSON.stringify(found)),
      (error: unknown) => {
        const type = error instanceof Refusal ? error.message : 'KMSInternalException';
        response.writeHead(type === 'KMSInternalException' ? 500 : 400);
        response.end(JSON.stringify({ __type: type, message: type }));
      },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    create(spec = 'ECC_NIST_EDWARDS25519') {
      const arn = `arn:aws:kms:eu-central-1:111122223333:key/${randomUUID()}`;
      const { privateKey } =
        spec === 'RSA_3072'
          ? generateKeyPairSync('rsa', { modulusLength: 3072 })
          : generateKeyPairSync('ed25519');
      keys.set(arn, privateKey);
      return arn;
    },
    messages,
    get mostAtOnce() {
      return counts.most;
    },
    get gather() {
      return counts.gather;
    },
    set gather(count) {
      counts.gather = count;
      if (count === 0) releaseAll();
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function metadata(arn: string, key: KeyObject): object {
  return {
    Arn: arn,
    KeyId: arn,
    KeyState: 'Enabled',
    Enabled: true,
    KeyUsage: 'SIGN_VERIFY',
    ...(key.asymmetricKeyType === 'rsa'
      ? { KeySpec: 'RSA_3072', SigningAlgorithms: ['RSASSA_PKCS1_V1_5_SHA_256'] }
      : {
          KeySpec: 'ECC_NIST_EDWARDS25519',
          SigningAlgorithms: ['ED25519_SHA_512', 'ED25519_PH_SHA_512'],
        }),
  };
}

/** The bytes before the digest in a DigestInfo of SHA-256 (RFC 8017 §9.2). */
const SHA_256 = Buffer.from('3031300d060960864801650304020105000420', 'hex');

/**
 * Signs in the two ways that the service requests from KMS: RAW with Ed25519, and DIGEST with RSA.
 * Throws for any other request.
 */
function signatureOf(key: KeyObject, message: Buffer, body: Record<string, string>): Buffer {
  const asked = `${body['MessageType']} ${body['SigningAlgorithm']}`;
  if (key.asymmetricKeyType === 'rsa') {
    const isDigest = asked === 'DIGEST RSASSA_PKCS1_V1_5_SHA_256';
    if (!isDigest || message.length !== 32) throw new Refusal('ValidationException');
    const padding = constants.RSA_PKCS1_PADDING;
    return privateEncrypt({ key, padding }, Buffer.concat([SHA_256, message]));
  }
  const fits = message.length > 0 && message.length <= LONGEST_RAW_MESSAGE;
  if (asked !== 'RAW ED25519_SHA_512' || !fits) throw new Refusal('ValidationException');
  return sign(null, message, key);
}

function spki(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
}
