/** The reasons why an object cannot be read or written. */
export type ObjectStoreFault =
  | 'no-bucket'
  | 'no-object'
  | 'denied'
  | 'no-credentials'
  | 'wrong-region'
  | 'too-large'
  | 'slow'
  | 'unreachable'
  | 'conflict'
  | 'failed';

/**
 * The error if an object cannot be read or written. Its message is one line that quotes nothing of
 * the object.
 */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError';

  constructor(
    readonly fault: ObjectStoreFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The members of an AWS SDK error, or of a Node.js error inside it, that say the reason. */
interface SdkError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const NO_OBJECT: ReadonlySet<unknown> = new Set(['NoSuchKey', 'NotFound']);
const ABORTED: ReadonlySet<unknown> = new Set(['AbortError', 'TimeoutError']);

/**
 * Converts an error of the AWS SDK to an error with a message of one line. The text of a response
 * is left out, because the log should not repeat what an unknown server wrote.
 */
export function asObjectStoreError(error: unknown): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const { name, code, $metadata } = (error ?? {}) as SdkError;
  const status = $metadata?.httpStatusCode;
  const as = (fault: ObjectStoreFault, message: string) =>
    new ObjectStoreError(fault, message, { cause: error });
  // The SDK also names a lost connection a time-out. Unlike the end of a wait, such an error has a
  // text from Node.js as its `code`.
  if (ABORTED.has(name) && typeof code !== 'string')
    return as('slow', 'the object store took too long to answer');
  if (name === 'CredentialsProviderError') {
    return as('no-credentials', 'the environment has no AWS credentials');
  }
  if (name === 'NoSuchBucket') return as('no-bucket', 'the bucket does not exist');
  if (NO_OBJECT.has(name) || status === 404) return as('no-object', 'the object does not exist');
  if (status === 401 || status === 403) {
    return as('denied', `access is denied, or the object does not exist (status ${status})`);
  }
  if (status === 301 || status === 307 || name === 'AuthorizationHeaderMalformed') {
    return as('wrong-region', 'the bucket is in another region');
  }
  if (status !== undefined && status >= 300) {
    return as('failed', `the object store answered with status ${status}`);
  }
  const reason = typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : '';
  return as('unreachable', `the object store cannot be reached${reason}`);
}
