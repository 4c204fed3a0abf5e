/** The fields of an OpenSSH certificate that the command reads. */
export interface SshCertificate {
  /** Decimal. */
  readonly serial: string;
  readonly keyId: string;
  readonly principals: readonly string[];
  /** Milliseconds since 1970; Infinity stands for a time without end. */
  readonly validAfter: number;
  readonly validBefore: number;
}

/** The number of strings of the public key, between the nonce and the serial, for each type of certificate. */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  'ssh-ed25519-cert-v01@openssh.com': 1,
  'ssh-rsa-cert-v01@openssh.com': 2,
  'ecdsa-sha2-nistp256-cert-v01@openssh.com': 2,
  'ecdsa-sha2-nistp384-cert-v01@openssh.com': 2,
  'ecdsa-sha2-nistp521-cert-v01@openssh.com': 2,
  'sk-ssh-ed25519-cert-v01@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256-cert-v01@openssh.com': 3,
};

/** A certificate is renewed on use when it has less than this many milliseconds left. */
export const RENEWAL_MARGIN = 10 * 60_000;

/** Reads a line in the format of `id-cert.pub`. A line that holds no certificate gives undefined. */
export function readCertificate(line: string): SshCertificate | undefined {
  try {
    const [type = '', encoded = ''] = line.trim().split(/\s+/);
    const keyFields = KEY_FIELDS[type];
    const bytes = Buffer.from(encoded, 'base64');
    let offset = 0;
    const string = () => {
      const start = offset + 4;
      offset = start + bytes.readUInt32BE(offset);
      if (offset > bytes.length) throw new RangeError('the certificate is cut off');
      return bytes.subarray(start, offset);
    };
    const uint64 = () => bytes.readBigUInt64BE((offset += 8) - 8);
    if (keyFields === undefined || string().toString('latin1') !== type) return undefined;
    for (let field = 0; field <= keyFields; field += 1) string();
    const serial = uint64().toString();
    offset += 4; // the type: user or host
    const keyId = string().toString('utf8');
    const principals = stringsOf(string());
    return { serial, keyId, principals, validAfter: time(uint64()), validBefore: time(uint64()) };
  } catch {
    return undefined;
  }
}

/** Tells if a certificate can be used at a time, and for a number of milliseconds longer. */
export function isValidAt(
  { validAfter, validBefore }: Pick<SshCertificate, 'validAfter' | 'validBefore'>,
  now: number,
  margin = 0,
): boolean {
  return validAfter <= now && now + margin < validBefore;
}

function stringsOf(bytes: Buffer): string[] {
  const strings: string[] = [];
  for (let offset = 0; offset < bytes.length;) {
    const start = offset + 4;
    offset = start + bytes.readUInt32BE(offset);
    strings.push(bytes.toString('utf8', start, offset));
  }
  return strings;
}

function time(seconds: bigint): number {
  return seconds === 0xffff_ffff_ffff_ffffn ? Infinity : Number(seconds) * 1000;
}
