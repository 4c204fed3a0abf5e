import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
/**
 * The number of bytes in a pixel of a true-color image without transparency. Chromium writes
 * screenshots in this format.
 */
const PIXEL = 3;
/** The largest number of colors in the palette of a PNG. */
const MOST_COLOURS = 256;

/**
 * Converts a true-color PNG to a PNG with a palette. For screenshots of pages, the result is a
 * third as large. If there are too many colors for a palette, it merges similar colors.
 */
export function smallPng(image: Buffer): Buffer {
  const chunks = chunksOf(image);
  const header = chunks.find(({ type }) => type === 'IHDR')?.content ?? Buffer.alloc(0);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header.readUInt16BE(8) !== 0x0802) throw new Error('not a PNG of 8 bits of true colour');
  const data = chunks.filter(({ type }) => type === 'IDAT').map(({ content }) => content);
  const pixels = unfiltered(inflateSync(Buffer.concat(data)), width, height);
  for (let lost = 0; lost < 8; lost += 1) {
    const found = indexed(pixels, width, height, lost);
    if (!found) continue;
    const head = Buffer.from(header);
    head.set([8, 3], 8);
    return Buffer.concat([
      SIGNATURE,
      chunk('IHDR', head),
      chunk('PLTE', found.palette),
      chunk('IDAT', deflateSync(found.lines, { level: 9 })),
      chunk('IEND', Buffer.alloc(0)),
    ]);
  }
  throw new Error('too many colours');
}

function chunksOf(image: Buffer): { type: string; content: Buffer }[] {
  const chunks = [];
  for (let at = SIGNATURE.length; at < image.length;) {
    const length = image.readUInt32BE(at);
    const type = image.toString('latin1', at + 4, at + 8);
    chunks.push({ type, content: image.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(content.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/**
 * Undoes the filters that PNG applies to each line for better compression (PNG specification,
 * section 9). Returns the pixels.
 */
function unfiltered(lines: Buffer, width: number, height: number): Buffer {
  const row = width * PIXEL;
  const pixels = Buffer.alloc(row * height);
  for (let y = 0; y < height; y += 1) {
    const filter = lines[y * (row + 1)] ?? 0;
    for (let x = 0; x < row; x += 1) {
      const left = x < PIXEL ? 0 : (pixels[y * row + x - PIXEL] ?? 0);
      const above = y === 0 ? 0 : (pixels[(y - 1) * row + x] ?? 0);
      const corner = x < PIXEL || y === 0 ? 0 : (pixels[(y - 1) * row + x - PIXEL] ?? 0);
      const guess =
        [0, left, above, (left + above) >> 1, nearest(left, above, corner)][filter] ?? 0;
      pixels[y * row + x] = ((lines[y * (row + 1) + 1 + x] ?? 0) + guess) & 255;
    }
  }
  return pixels;
}

/** Returns the prediction of PNG's Paeth filter for a byte, from its three neighbors. */
function nearest(left: number, above: number, corner: number): number {
  const [a, b, c] = [above - corner, left - corner, left + above - 2 * corner].map(Math.abs) as [
    number,
    number,
    number,
  ];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

/**
 * Returns the lines of an image as indexes into a palette. It drops the `lost` lowest bits of each
 * color channel. Returns undefined if there are still too many colors.
 */
function indexed(pixels: Buffer, width: number, height: number, lost: number) {
  const colours = new Map<number, number>();
  const lines = Buffer.alloc((width + 1) * height);
  const palette: number[] = [];
  for (let at = 0, pixel = 0; at < pixels.length; at += PIXEL, pixel += 1) {
    const colour = pixels.readUIntBE(at, PIXEL);
    const mask = (255 >> lost) << lost;
    const key = colour & (mask * 0x010101);
    let index = colours.get(key);
    if (index === undefined) {
      index = colours.size;
      if (index === MOST_COLOURS) return undefined;
      colours.set(key, index);
      palette.push(...pixels.subarray(at, at + PIXEL));
    }
    lines[Math.floor(pixel / width) * (width + 1) + 1 + (pixel % width)] = index;
  }
  return { lines, palette: Buffer.from(palette) };
}
