import { Agent } from 'node:https';
import { getCACertificates } from 'node:tls';
import type { S3Client } from '@aws-sdk/client-s3';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { asObjectStoreError, ObjectStoreError } from './object-store-error.js';

/** A server of an object store. */
export interface S3Server {
  /** The region; undefined if the AWS SDK takes it from its own settings. */
  readonly region: string | undefined;
  /** The URL of a store other than AWS, whose paths begin with the bucket; undefined for AWS. */
  readonly endpoint: string | undefined;
  /** PEM certificates of authorities that are trusted in addition to those of Node.js. */
  readonly extraCaCerts: readonly string[];
}

/** The milliseconds for one request, with all attempts of the SDK. */
export const TIME_LIMIT = 10_000;

/**
 * Makes a client of the AWS SDK for a server. The SDK is loaded when a client or a command is made,
 * so that a service without an object store never loads it. The SDK finds the credentials: in
 * variables, by web identity (IRSA), from a container or from EC2. Plain http is refused, except to
 * a loopback host.
 */
export async function openClient({ region, endpoint, extraCaCerts }: S3Server): Promise<S3Client> {
  const { S3Client: Client } = await import('@aws-sdk/client-s3');
  const client = new Client({
    ...(region === undefined ? {} : { region }),
    followRegionRedirects: endpoint === undefined,
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    requestChecksumCalculation: 'WHEN_REQUIRED', // not every other store knows these checksums
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      httpsAgent: new Agent({ ca: [...getCACertificates('default'), ...extraCaCerts] }),
    },
  });
  client.middlewareStack.add(
    (next) => (args) => {
      requireTls(args.request);
      return next(args);
    },
    { step: 'finalizeRequest', name: 'requireTls' },
  );
  return client;
}

/** Refuses a request over plain HTTP, to which a configuration file of the SDK could lead. */
function requireTls(request: unknown): void {
  const { protocol, hostname } = request as {
    readonly protocol: string;
    readonly hostname: string;
  };
  if (isHttpsOrLoopback(`${protocol}//${hostname}`)) return;
  throw new ObjectStoreError('failed', 'must be reached by https (http only for localhost)');
}

/**
 * Runs a request until it ends, its time is over, or the signal is aborted.
 *
 * @param timeLimit the milliseconds for the request, with all attempts of the SDK
 * @throws ObjectStoreError for any error of the request, and if the time is over or the signal is
 *   aborted
 */
export async function withinLimit<T>(
  timeLimit: number,
  stopping: AbortSignal | undefined,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(timeLimit);
  const signal = stopping === undefined ? limit : AbortSignal.any([limit, stopping]);
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    // The race is needed because the SDK does not notice the signal while it waits between two
    // attempts or looks for credentials.
    return await Promise.race([read(signal), aborted]);
  } catch (error) {
    throw asObjectStoreError(error);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
