/** The kinds of reasons for which a call of AWS KMS failed. */
export type KmsFaultKind =
  | 'throttled'
  | 'failing'
  | 'unreachable'
  | 'timeout'
  | 'missing'
  | 'disabled'
  | 'denied'
  | 'credentials'
  | 'region'
  | 'input'
  | 'refused'
  | 'suspended';

/**
 * The error of a failed call of AWS KMS. Its message is for the log and for the operator at
 * start-up, never for a client.
 */
export class KmsFault extends Error {
  override readonly name = 'KmsFault';

  /** @param wait the milliseconds until a next call may succeed, or 0 if that is not known */
  constructor(
    readonly kind: KmsFaultKind,
    message: string,
    readonly wait = 0,
  ) {
    super(message);
  }
}

/**
 * The kinds of faults that may end by themselves within a second. A refusal is not among them,
 * because KMS would refuse another attempt as well.
 */
const PASSING: ReadonlySet<KmsFaultKind> = new Set([
  'throttled',
  'failing',
  'unreachable',
  'timeout',
]);

/** Returns true if another attempt of the call may succeed. */
export function isPassing({ kind }: KmsFault): boolean {
  return PASSING.has(kind);
}

/** The kind of fault for each error of AWS or its SDK, by the name of the error. */
const KIND_OF_NAME: Readonly<Record<string, KmsFaultKind>> = {
  ThrottlingException: 'throttled',
  Throttling: 'throttled',
  TooManyRequestsException: 'throttled',
  RequestLimitExceeded: 'throttled',
  LimitExceededException: 'throttled',
  KMSInternalException: 'failing',
  DependencyTimeoutException: 'failing',
  KeyUnavailableException: 'failing',
  InternalFailure: 'failing',
  ServiceUnavailable: 'failing',
  ServiceUnavailableException: 'failing',
  TimeoutError: 'timeout',
  NotFoundException: 'missing',
  InvalidArnException: 'missing',
  DisabledException: 'disabled',
  KMSInvalidStateException: 'disabled',
  AccessDeniedException: 'denied',
  AccessDenied: 'denied',
  CredentialsProviderError: 'credentials',
  ProviderError: 'credentials',
  TokenProviderError: 'credentials',
  UnrecognizedClientException: 'credentials',
  InvalidClientTokenId: 'credentials',
  InvalidSignatureException: 'credentials',
  IncompleteSignature: 'credentials',
  MissingAuthenticationTokenException: 'credentials',
  ExpiredTokenException: 'credentials',
  InvalidCiphertextException: 'input',
  IncorrectKeyException: 'input',
};

/** Matches the codes of Node.js for faults of a connection. */
const NETWORK_CODE = /^(?:E[A-Z]+|CERT_[A-Z_]+|[A-Z_]*CERT[A-Z_]*|ERR_(?:SSL|TLS)_[A-Z_]+)$/;

/** The text of each kind of fault for an operator. No text quotes a message of AWS. */
const WORDS: Readonly<Record<Exclude<KmsFaultKind, 'refused'>, string>> = {
  throttled: 'KMS answers that it gets too many requests',
  failing: 'KMS answers with an error of its own',
  unreachable: 'KMS cannot be reached',
  timeout: 'KMS does not answer in time',
  missing: 'KMS has no such key in this account and region',
  disabled: 'the key is disabled, or about to be deleted',
  denied: 'AWS denies this service access to the key',
  credentials: 'AWS accepts no credentials of this service',
  region: 'no AWS region is known; set AWS_REGION, or use the ARN of the key',
  input: 'KMS does not open the data key with this key and context',
  suspended: 'KMS has failed several times in a row; calls are suspended',
};

/** The fields of an error of the SDK that decide its kind. */
interface SdkError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean };
}

/**
 * Converts an error of the AWS SDK to a fault. Its message has a text of this service and the name
 * that AWS gave the error.
 */
export function faultOf(thrown: unknown): KmsFault {
  if (thrown instanceof KmsFault) return thrown;
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as SdkError;
  const name = /^\w{1,64}$/.exec(String(error.name))?.[0] ?? 'Error';
  const code = NETWORK_CODE.exec(String(error.code))?.[0];
  const kind = kindOf(error, name, code);
  if (kind === 'refused') return new KmsFault(kind, `KMS refuses the call (${name})`);
  return new KmsFault(kind, `${WORDS[kind]} (${code ?? name})`);
}

/** Makes the fault of a call that took too long. */
export function timedOut(): KmsFault {
  return new KmsFault('timeout', WORDS.timeout);
}

/** Makes the fault of a call that is not sent because the circuit breaker of its key is open. */
export function suspended(wait: number): KmsFault {
  return new KmsFault('suspended', WORDS.suspended, wait);
}

function kindOf(error: SdkError, name: string, code: string | undefined): KmsFaultKind {
  const { httpStatusCode: status = 0, clockSkewCorrected } = error.$metadata ?? {};
  // The clock of this machine was wrong. The SDK has noted the difference, and signs the next
  // request by the clock of AWS. So another attempt may succeed.
  if (clockSkewCorrected === true) return 'failing';
  const known = Object.hasOwn(KIND_OF_NAME, name) ? KIND_OF_NAME[name] : undefined;
  if (known !== undefined) return known;
  if (String(error.message).startsWith('Region is missing')) return 'region';
  if (code !== undefined) return 'unreachable';
  if (status === 429) return 'throttled';
  if (status === 403) return 'denied';
  // If the status is below 400, the response was not written by KMS. Such an error is `failing`, as
  // for a status of 500 or more.
  return status >= 400 && status < 500 ? 'refused' : 'failing';
}
