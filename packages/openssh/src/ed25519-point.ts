/** The prime of the field of edwards25519, and the constant of the curve (RFC 8032 §5.1). */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/** The largest number of valid points that {@link ed25519PointFault} remembers. */
const MOST_KNOWN = 1_000;

/**
 * Points that were found valid, the oldest first. They are kept, because the check takes time, and
 * people often get new certificates for the same key.
 */
const known = new Set<string>();

/**
 * Returns the fault of 32 bytes as an Ed25519 public key; undefined for a valid key. The check is
 * needed, because OpenSSL accepts any 32 bytes. For a point of small order any program can forge
 * signatures, so that its certificate could be used without a private key.
 */
export function ed25519PointFault(encoded: Uint8Array): string | undefined {
  const name = Buffer.from(encoded).toString('latin1');
  if (known.has(name)) return undefined;
  const fault = computeFault(encoded);
  if (fault === undefined) {
    const [oldest] = known;
    if (oldest !== undefined && known.size >= MOST_KNOWN) known.delete(oldest);
    known.add(name);
  }
  return fault;
}

function computeFault(encoded: Uint8Array): string | undefined {
  const bigEndian = Buffer.from(encoded.toReversed());
  bigEndian[0] = (bigEndian[0] ?? 0) & 0x7f; // the top bit is the sign of x (RFC 8032 §5.1.2)
  const y = BigInt(`0x${bigEndian.toString('hex')}`);
  if (y >= P) return 'its point is not in canonical form';

  // The equation is x² = (y² - 1) / (d·y² + 1), so the right side must be a square. A fraction u/v
  // is a square exactly if u·v is one (§5.1.3).
  const ySquared = (y * y) % P;
  const u = (ySquared - 1n + P) % P;
  const v = (D * ySquared + 1n) % P;
  if (jacobi((u * v) % P, P) === -1) return 'its point is not on the curve';

  // Points of small order: y = ±1 has order 1 or 2, and y = 0 has order 4. A point of order 8
  // doubles to one of order 4: d·y⁴ + 2y² - 1 = 0.
  const orderEight = (D * ySquared * ySquared + 2n * ySquared - 1n) % P === 0n;
  if (ySquared <= 1n || orderEight)
    return 'its point has a small order, so anyone could sign for it';
  return undefined;
}

/**
 * Returns the Jacobi symbol (a/n) for an odd n. For a prime n, 1 means that a is a square modulo n,
 * -1 that it is not, and 0 that n divides a.
 */
function jacobi(a: bigint, n: bigint): -1 | 0 | 1 {
  let sign: -1 | 1 = 1;
  while (a !== 0n) {
    while ((a & 1n) === 0n) {
      a >>= 1n;
      const residue = n & 7n;
      if (residue === 3n || residue === 5n) sign = sign === 1 ? -1 : 1;
    }
    [a, n] = [n, a]; // quadratic reciprocity
    if ((a & 3n) === 3n && (n & 3n) === 3n) sign = sign === 1 ? -1 : 1;
    a %= n;
  }
  return n === 1n ? sign : 0;
}
