import { SshFormatError, SshReader, sshStrings } from './wire.js';

/**
 * The fields of an OpenSSH certificate (OpenSSH PROTOCOL.certkeys). The parser does not verify the
 * signature, so that the fields alone prove nothing.
 */
export interface SshCertificate {
  /**
   * The type at the beginning of the certificate's line, such as
   * `ssh-ed25519-cert-v01@openssh.com`.
   */
  readonly type: string;
  /** The certified public key in the SSH wire encoding. */
  readonly publicKey: Buffer;
  readonly serial: bigint;
  /** True for a certificate of a user, false for one of a host. */
  readonly isOfUser: boolean;
  readonly keyId: string;
  readonly principals: readonly string[];
  /** The first moment at which the certificate is valid, in milliseconds since 1970. */
  readonly validAfter: number;
  /**
   * The moment at which the certificate expires, in milliseconds since 1970; Infinity if it never
   * expires.
   */
  readonly validBefore: number;
  /**
   * The names of the critical options, which a server must understand to accept the certificate.
   */
  readonly criticalOptions: readonly string[];
  /** The names of the extensions, each of which permits something, such as `permit-pty`. */
  readonly extensions: readonly string[];
  /** The public key of the authority that signed the certificate, in the SSH wire encoding. */
  readonly authority: Buffer;
  /** The bytes that the authority signed: the whole certificate up to the signature. */
  readonly signed: Buffer;
  /** The signature in the SSH wire encoding: its type, and the bytes. */
  readonly signature: Buffer;
}

/** The number of fields that follow the type in a public key, by the type of the key. */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'sk-ssh-ed25519@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
};

const SUFFIX = '-cert-v01@openssh.com';
const USER = 1; // SSH2_CERT_TYPE_USER
const HOST = 2; // SSH2_CERT_TYPE_HOST
const FOREVER = 0xffff_ffff_ffff_ffffn;

/**
 * Parses a line in the format of `id-cert.pub`. Missing bytes, and bytes after the certificate, are
 * errors.
 *
 * @throws SshFormatError for a line that is no certificate
 */
export function readCertificate(line: string): SshCertificate {
  const [type = '', encoded = ''] = line.trim().split(/\s+/);
  const keyType = keyTypeOfCertificate(type);
  const whole = Buffer.from(encoded, 'base64');
  const reader = new SshReader(whole);
  if (reader.name() !== type) throw new SshFormatError('it is not of the type its line says');
  reader.string(); // the nonce
  const keyFields = Array.from({ length: KEY_FIELDS[keyType] ?? 0 }, () => reader.string());
  const serial = reader.uint64();
  const kind = reader.uint32();
  if (kind !== USER && kind !== HOST) throw new SshFormatError('it is of neither user nor host');
  const fields = {
    type,
    publicKey: sshStrings([keyType, ...keyFields]),
    serial,
    isOfUser: kind === USER,
    keyId: reader.string().toString(),
    principals: reader.strings().map(String),
    validAfter: milliseconds(reader.uint64()),
    validBefore: milliseconds(reader.uint64()),
    criticalOptions: namesOf(reader.strings()),
    extensions: namesOf(reader.strings()),
  };
  reader.string(); // reserved
  const authority = reader.string();
  const signed = whole.subarray(0, reader.offset);
  const signature = reader.string();
  reader.end();
  return { ...fields, authority, signed, signature };
}

/**
 * Returns true if a certificate is valid at the time `now`, in milliseconds since 1970, and stays
 * valid for `margin` milliseconds after it.
 */
export function isValidAt(
  { validAfter, validBefore }: Pick<SshCertificate, 'validAfter' | 'validBefore'>,
  now: number,
  margin = 0,
): boolean {
  return validAfter <= now && now + margin < validBefore;
}

/**
 * Returns the type of the certified key, such as `ssh-ed25519`, by the type at the beginning of the
 * certificate's line.
 * @throws SshFormatError for an unknown type
 */
function keyTypeOfCertificate(type: string): string {
  const known = Object.keys(KEY_FIELDS).find(
    (keyType) => type === `${keyType.replace(/@openssh\.com$/, '')}${SUFFIX}`,
  );
  if (known === undefined) throw new SshFormatError('it is not a certificate of a known type');
  return known;
}

/** Returns the names in a list in which each name is followed by its value. */
function namesOf(options: readonly Buffer[]): string[] {
  return options.filter((_, index) => index % 2 === 0).map(String);
}

function milliseconds(seconds: bigint): number {
  return seconds === FOREVER ? Infinity : Number(seconds) * 1000;
}
