/**
 * The error for bytes that are no valid SSH wire encoding. Its message names the fault and contains
 * none of the bytes.
 */
export class SshFormatError extends Error {
  override readonly name = 'SshFormatError';
}

/**
 * Reads data in the SSH wire encoding (RFC 4251 §5) from the beginning. Every length is compared
 * with the number of remaining bytes, so that hostile bytes cause an {@link SshFormatError}, and
 * never a read past the end.
 */
export class SshReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * Reads the next `length` bytes.
   * @returns a view on the input, not a copy
   */
  bytes(length: number): Buffer {
    const end = this.#offset + length;
    if (end > this.#bytes.length) throw new SshFormatError('it ends in the middle of a field');
    const view = this.#bytes.subarray(this.#offset, end);
    this.#offset = end;
    return view;
  }

  uint32(): number {
    return this.bytes(4).readUInt32BE();
  }

  uint64(): bigint {
    return this.bytes(8).readBigUInt64BE();
  }

  /**
   * Reads a string, which begins with its length.
   * @returns the content of the string, as a view on the input
   */
  string(): Buffer {
    return this.bytes(this.uint32());
  }

  /**
   * Reads a string whose content is again a sequence of strings, such as the list of principals in
   * a certificate.
   */
  strings(): Buffer[] {
    const list = new SshReader(this.string());
    const found: Buffer[] = [];
    while (list.#offset < list.#bytes.length) found.push(list.string());
    return found;
  }

  /** Reads a string of ASCII, such as the name of a key type or a curve. */
  name(): string {
    return this.string().toString('latin1');
  }

  /**
   * Reads a positive integer (an mpint of RFC 4251 §5), which must have its shortest form.
   * @returns its bytes without the sign byte
   */
  mpint(): Buffer {
    const value = this.string();
    const [first = 0, second = 0] = value;
    if (first >= 0x80) throw new SshFormatError('it contains a negative number');
    if (first === 0 && second < 0x80) {
      throw new SshFormatError('it contains a number that is zero or has needless leading zeros');
    }
    return first === 0 ? value.subarray(1) : value;
  }

  /** The number of bytes that were read. */
  get offset(): number {
    return this.#offset;
  }

  /** Reads all bytes that are left. */
  rest(): Buffer {
    return this.bytes(this.#bytes.length - this.#offset);
  }

  /**
   * Checks that all bytes were read.
   * @throws SshFormatError if bytes are left
   */
  end(): void {
    if (this.#offset !== this.#bytes.length) {
      throw new SshFormatError('there are bytes after its end');
    }
  }
}

/** Encodes a string with its length before it. A text is encoded as UTF-8. */
export function sshString(value: Uint8Array | string): Buffer {
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  const encoded = Buffer.allocUnsafe(4 + length);
  encoded.writeUInt32BE(length);
  if (typeof value === 'string') encoded.write(value, 4);
  else encoded.set(value, 4);
  return encoded;
}

/**
 * Encodes a positive integer (RFC 4251 §5) from its big-endian bytes in the shortest form. A zero
 * byte is put first if the highest bit is set.
 */
export function sshMpint(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const magnitude = first === -1 ? bytes.subarray(bytes.length) : bytes.subarray(first);
  const isHigh = (magnitude[0] ?? 0) >= 0x80;
  return sshString(isHigh ? Buffer.concat([Buffer.of(0), magnitude]) : magnitude);
}

/**
 * Encodes strings one after another, each with its length before it. The list of principals in a
 * certificate has this form.
 */
export function sshStrings(values: readonly (Uint8Array | string)[]): Buffer {
  return Buffer.concat(values.map(sshString));
}

/** Encodes an unsigned 32-bit number. */
export function uint32(value: number): Buffer {
  const encoded = Buffer.allocUnsafe(4);
  encoded.writeUInt32BE(value);
  return encoded;
}

/** Encodes an unsigned 64-bit number. */
export function uint64(value: bigint): Buffer {
  const encoded = Buffer.allocUnsafe(8);
  encoded.writeBigUInt64BE(value);
  return encoded;
}
