import { readFileSync, writeFileSync } from 'node:fs';

/* Offsets in a PE file, of Microsoft's "PE Format". */
const HEADER_POINTER = 0x3c;
const OPTIONAL_HEADER = 24;
const PE32_PLUS = 0x20b;
const CHECKSUM = 64;
const DIRECTORIES = 112;
const SECURITY = 4;
const SECTION_SIZE = 40;

/**
 * Removes what is left of the signature of a program for Windows after the script was written into
 * it. Windows would show a wrong signature, and tools would not replace it. The checksum of the
 * file is computed again.
 *
 * @param {string} path a PE file for 64 bits
 * @throws Error for another file
 */
export function removeSignature(path) {
  const whole = readFileSync(path);
  const header = whole.readUInt32LE(HEADER_POINTER);
  const optional = header + OPTIONAL_HEADER;
  if (whole.toString('latin1', header, header + 4) !== 'PE\0\0')
    throw new Error('the file is no PE file');
  if (whole.readUInt16LE(optional) !== PE32_PLUS) throw new Error('the file is not for 64 bits');
  // The signature is stored after all sections, so that it is cut off here.
  const file = whole.subarray(0, endOfSections(whole, header));
  file.fill(0, optional + DIRECTORIES + 8 * SECURITY, optional + DIRECTORIES + 8 * SECURITY + 8);
  file.writeUInt32LE(0, optional + CHECKSUM);
  file.writeUInt32LE(checksumOf(file), optional + CHECKSUM);
  writeFileSync(path, file);
}

function endOfSections(file, header) {
  const table = header + OPTIONAL_HEADER + file.readUInt16LE(header + 20);
  const ends = Array.from({ length: file.readUInt16LE(header + 6) }, (_, n) => {
    const at = table + n * SECTION_SIZE;
    return file.readUInt32LE(at + 16) + file.readUInt32LE(at + 20);
  });
  return Math.max(...ends);
}

/** Returns the checksum of a file in which the bytes of the checksum are 0. */
function checksumOf(file) {
  let sum = 0;
  for (let at = 0; at + 1 < file.length; at += 2) {
    sum += file[at] | (file[at + 1] << 8);
    sum = (sum & 0xffff) + (sum >>> 16);
  }
  if (file.length % 2 === 1) sum += file[file.length - 1];
  sum = (sum & 0xffff) + (sum >>> 16);
  return ((sum & 0xffff) + file.length) >>> 0;
}
