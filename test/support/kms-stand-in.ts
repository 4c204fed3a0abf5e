import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** The most bytes that KMS signs with `MessageType: RAW`. */
export const LONGEST_RAW_MESSAGE = 4096;

/** A stand-in for AWS KMS with Ed25519 keys, which moto 5.2.5 does not know: three actions of its JSON protocol. */
export interface KmsStandIn {
  readonly endpoint: string;
  /** Creates a key, and returns its ARN. */
  create(): string;
  /** The lengths of the messages that were signed. */
  readonly messages: readonly number[];
  /** The most signatures that were asked for at once. */
  readonly mostAtOnce: number;
  /** Holds every signature back until so many are asked for at once; 0 holds none back. */
  gather: number;
  close(): Promise<void>;
}

/** Refuses as KMS does. */
class Refusal extends Error {
  constructor(readonly type: string) {
    super(type);
  }
}

/** Starts the stand-in on loopback. */
export async function startKmsStandIn(): Promise<KmsStandIn> {
  const keys = new Map<string, KeyObject>();
  const messages: number[] = [];
  const held: (() => void)[] = [];
  const counts = { now: 0, most: 0, gather: 0 };

  const gathered = async (): Promise<void> => {
    counts.now += 1;
    counts.most = Math.max(counts.most, counts.now);
    if (counts.now >= counts.gather) for (const release of held.splice(0)) release();
    else await new Promise<void>((resolve) => held.push(resolve));
    counts.now -= 1;
  };
  const answer = async (request: IncomingMessage): Promise<object> => {
    const body = JSON.parse(await text(request)) as Record<string, string>;
    const key = keys.get(body['KeyId'] ?? '');
    if (key === undefined) throw new Refusal('NotFoundException');
    const arn = body['KeyId'] ?? '';
    const action = request.headers['x-amz-target'];
    if (action === 'TrentService.DescribeKey') return { KeyMetadata: metadata(arn) };
    if (action === 'TrentService.GetPublicKey') return { ...metadata(arn), PublicKey: spki(key) };
    if (action !== 'TrentService.Sign') throw new Refusal('UnknownOperationException');
    const message = Buffer.from(body['Message'] ?? '', 'base64');
    const isRaw = body['MessageType'] === 'RAW' && body['SigningAlgorithm'] === 'ED25519_SHA_512';
    if (!isRaw || message.length === 0 || message.length > LONGEST_RAW_MESSAGE) {
      throw new Refusal('ValidationException');
    }
    messages.push(message.length);
    await gathered();
    return { KeyId: arn, Signature: sign(null, message, key).toString('base64') };
  };

  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/x-amz-json-1.1');
    answer(request).then(
      (found) => response.end(JSON.stringify(found)),
      (error: unknown) => {
        const type = error instanceof Refusal ? error.type : 'KMSInternalException';
        response.writeHead(type === 'KMSInternalException' ? 500 : 400);
        response.end(JSON.stringify({ __type: type, message: type }));
      },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    create() {
      const arn = `arn:aws:kms:eu-central-1:111122223333:key/${randomUUID()}`;
      keys.set(arn, generateKeyPairSync('ed25519').privateKey);
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
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function metadata(arn: string): object {
  return {
    Arn: arn,
    KeyId: arn,
    KeyState: 'Enabled',
    Enabled: true,
    KeyUsage: 'SIGN_VERIFY',
    KeySpec: 'ECC_NIST_EDWARDS25519',
    SigningAlgorithms: ['ED25519_SHA_512', 'ED25519_PH_SHA_512'],
  };
}

function spki(key: KeyObject): string {
  const jwk = key.export({ format: 'jwk' });
  const prefix = Buffer.from('302a300506032b6570032100', 'hex'); // RFC 8410 §4
  return Buffer.concat([prefix, Buffer.from(jwk.x ?? '', 'base64url')]).toString('base64');
}
