/**
 * The bytes are no valid SSH wire encoding; the message says what is wrong and carries none of
 * them.
 */
export class SshFormatError extends Error {
  override readonly name = 'SshFormatError';
}

/**
 * Reads the SSH wire encoding (RFC 4251 §5) front to back. Every length is checked against what is
 * there, so hostile bytes end in an {@link SshFormatError}, never in a read past the end.
 */
export class SshReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** @returns the next `length` bytes, as a view on the input */
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

  /** @returns the content of a length-prefixed string, as a view on the input */
  string(): Buffer {
    return this.bytes(this.uint32());
  }

  /**
   * @returns the strings that lie one behind the other in a string, as certificates nest their
   * lists
   */
  strings(): Buffer[] {
    const list = new SshReader(this.string());
    const found: Buffer[] = [];
    while (list.#offset < list.#bytes.length) found.push(list.string());
    return found;
  }

  /** @returns a string of ASCII names, such as a key type or a curve */
  name(): string {
    return this.string().toString('latin1');
  }

  /**
   * @returns the magnitude of a positive integer in its one shortest form, without the sign byte
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

  /** The number of bytes that are read. */
  get offset(): number {
    return this.#offset;
  }

  /** @returns the bytes that are not read yet */
  rest(): Buffer {
    return this.bytes(this.#bytes.length - this.#offset);
  }

  /** @throws SshFormatError when bytes are left */
  end(): void {
    if (this.#offset !== this.#bytes.length) {
      throw new SshFormatError('there are bytes after its end');
    }
  }
}

/** Encodes a length-prefixed string; text is taken as UTF-8. */
export function sshString(value: Uint8Array | string): Buffer {
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  const encoded = Buffer.allocUnsafe(4 + length);
  encoded.writeUInt32BE(length);
  if (typeof value === 'string') encoded.write(value, 4);
  else encoded.set(value, 4);
  return encoded;
}

/**
 * Encodes a positive integer (RFC 4251 §5) of these big-endian bytes: shortest form, with a byte of
 * zero before a highest bit.
 */
export function sshMpint(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const magnitude = first === -1 ? bytes.subarray(bytes.length) : bytes.subarray(first);
  const isHigh = (magnitude[0] ?? 0) >= 0x80;
  return sshString(isHigh ? Buffer.concat([Buffer.of(0), magnitude]) : magnitude);
}

/** Encodes strings one behind the other, as certificates nest their lists. */
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
