import { X509Certificate } from 'node:crypto';
import { BasicConstraints, Certificate } from 'pkijs';

/** The most certificates a client may present: it bounds the signatures that one request has us verify. */
const LONGEST_CHAIN = 5;

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const EXTENDED_KEY_USAGE = '2.5.29.37';
/** Not judged here, so that it fails whether it is critical or not, as it must be (RFC 5280 §4.2.1.10). */
const NAME_CONSTRAINTS = '2.5.29.30';
/** What is taken into account here or by `checkIssued`; another critical extension fails (RFC 5280 §4.2). */
const UNDERSTOOD = new Set([BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, '2.5.29.17']);

/** id-kp-clientAuth and anyExtendedKeyUsage (RFC 5280 §4.2.1.12). */
const FOR_CLIENTS = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];

/** Signatures over MD2, MD4, MD5 and SHA-1, of RSA, DSA and ECDSA: others can be made to fit them (RFC 9325 §4.5). */
const WEAK_SIGNATURES = new Set([
  ...['2', '3', '4', '5'].map((hash) => `1.2.840.113549.1.1.${hash}`),
  '1.2.840.10040.4.3',
  '1.2.840.10045.4.1',
]);

/** Bits of an RSA key (RFC 9325 §4.5). */
const SHORTEST_RSA = 2048;

/** The most significant bit of the first octet of a KeyUsage: digitalSignature. */
const DIGITAL_SIGNATURE = 0x80;

/**
 * Decides whether a client certificate leads to one of the operator's authorities (RFC 5280 §6.1). OpenSSL does not
 * decide it in the handshake: with the authorities at hand it would send their names, and then clients on JSSE, SChannel and
 * NSS keep a self-signed certificate to themselves.
 *
 * @param leaf as the TLS layer has it, with what the client presented behind it in `issuerCertificate`
 * @param authorities self-signed ones are trusted, others only help to build the path
 */
export function leadsToAuthority(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
  now: Date,
): boolean {
  const presented = presentedBehind(leaf);
  if (!presented || !isForClients(leaf)) return false;
  const issuers = [...authorities, ...presented];
  const roots = authorities.filter(isSelfSigned);
  const trusted = ({ raw }: X509Certificate) => roots.some((root) => root.raw.equals(raw));
  let current = leaf;
  for (let below = 0; below < LONGEST_CHAIN; below += 1) {
    if (!isUsable(current, now) || hasWeakSignature(current)) return false;
    const child = current;
    const signers = issuers.filter((issuer) => hasSigned(issuer, child) && mayIssue(issuer, below));
    const issuer = signers.find(trusted) ?? signers[0];
    if (!issuer) return false;
    if (trusted(issuer)) return isUsable(issuer, now);
    current = issuer;
  }
  return false;
}

/** Lists the certificates a client presented behind its own; undefined where there are too many. */
function presentedBehind(leaf: X509Certificate): X509Certificate[] | undefined {
  const presented: X509Certificate[] = [];
  for (let next = leaf.issuerCertificate; next; next = next.issuerCertificate) {
    if (presented.length === LONGEST_CHAIN) return undefined;
    presented.push(next);
  }
  return presented;
}

function hasSigned(issuer: X509Certificate, child: X509Certificate): boolean {
  return child.checkIssued(issuer) && child.verify(issuer.publicKey);
}

function isSelfSigned(certificate: X509Certificate): boolean {
  return hasSigned(certificate, certificate);
}

/** Checks the dates and the size of the key, and that no critical extension says more than is understood here. */
function isUsable(certificate: X509Certificate, now: Date): boolean {
  if (!(now >= certificate.validFromDate && now <= certificate.validToDate)) return false;
  const { modulusLength = SHORTEST_RSA } = certificate.publicKey.asymmetricKeyDetails ?? {};
  if (modulusLength < SHORTEST_RSA) return false;
  return extensionsOf(certificate).every(
    ({ extnID, critical }) => UNDERSTOOD.has(extnID) || !(critical || extnID === NAME_CONSTRAINTS),
  );
}

/** An authority's own signature is not asked about: it is trusted as it is. */
function hasWeakSignature({ raw }: X509Certificate): boolean {
  return WEAK_SIGNATURES.has(Certificate.fromBER(raw).signatureAlgorithm.algorithmId);
}

/** @param below the number of certificates between this issuer and the leaf (RFC 5280 §4.2.1.9) */
function mayIssue(issuer: X509Certificate, below: number): boolean {
  if (!issuer.ca || !isPurposeOfClients(issuer)) return false;
  const found = extensionsOf(issuer).find(({ extnID }) => extnID === BASIC_CONSTRAINTS);
  if (!found) return false;
  const { cA, pathLenConstraint } = BasicConstraints.fromBER(
    found.extnValue.valueBlock.valueHexView,
  );
  return cA && (typeof pathLenConstraint === 'number' ? pathLenConstraint : Infinity) >= below;
}

/** A certificate for servers alone, or one whose key may not sign, authenticates no client (RFC 5280 §4.2.1.12). */
function isForClients(leaf: X509Certificate): boolean {
  if (!isPurposeOfClients(leaf)) return false;
  const usage = extensionsOf(leaf).find(({ extnID }) => extnID === KEY_USAGE);
  const bits = usage?.extnValue.valueBlock.valueHexView.at(3);
  return bits === undefined || (bits & DIGITAL_SIGNATURE) !== 0;
}

/** Whether the extended key usages allow clients. Those of an authority bound what it issues, as OpenSSL has it. */
function isPurposeOfClients(certificate: X509Certificate): boolean {
  // Node calls them `keyUsage`.
  const purposes = certificate.keyUsage as readonly string[] | undefined;
  return !purposes || purposes.some((purpose) => FOR_CLIENTS.includes(purpose));
}

function extensionsOf(certificate: X509Certificate) {
  return Certificate.fromBER(certificate.raw).extensions ?? [];
}
