import { X509Certificate } from 'node:crypto';
import { BasicConstraints, Certificate, RSASSAPSSParams } from 'pkijs';

/**
 * The largest number of issuer certificates that a client may send, and of certificates below the
 * trusted authority. It limits the signatures that are verified for one request.
 */
const LONGEST_CHAIN = 5;

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const EXTENDED_KEY_USAGE = '2.5.29.37';
/**
 * The extension Name Constraints. This file does not evaluate it, so a certificate with it is
 * refused, even if the extension is not marked as critical. RFC 5280 §4.2.1.10 says that it must be
 * critical.
 */
const NAME_CONSTRAINTS = '2.5.29.30';
/**
 * The extensions that may be critical: those that this file or Node's `checkIssued` evaluates, and
 * the subject alternative name (2.5.29.17), which restricts nothing. A certificate with any other
 * critical extension is refused (RFC 5280 §4.2).
 */
const UNDERSTOOD = new Set([BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, '2.5.29.17']);

/**
 * The key purposes of a client certificate: id-kp-clientAuth and anyExtendedKeyUsage (RFC 5280
 * §4.2.1.12).
 */
const FOR_CLIENTS = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];

/**
 * The algorithms of signatures that are accepted: RSA (PKCS #1 version 1.5) and ECDSA over SHA-256,
 * SHA-384 and SHA-512, Ed25519 and Ed448. Every other algorithm is refused, because an attacker can
 * forge signatures over MD5 and SHA-1 (RFC 9325 §4.5). RSASSA-PSS names its hash in its parameters.
 */
const STRONG_SIGNATURES = new Set([
  ...['11', '12', '13'].map((hash) => `1.2.840.113549.1.1.${hash}`),
  ...['2', '3', '4'].map((hash) => `1.2.840.10045.4.3.${hash}`),
  '1.3.101.112',
  '1.3.101.113',
]);
const RSASSA_PSS = '1.2.840.113549.1.1.10';
/** The object identifiers of SHA-256, SHA-384 and SHA-512. */
const STRONG_HASHES = new Set(['1', '2', '3'].map((hash) => `2.16.840.1.101.3.4.2.${hash}`));

/** The size of the smallest RSA key in bits (RFC 9325 §4.5). */
const SHORTEST_RSA = 2048;

/** The most significant bit of the first octet of a KeyUsage: digitalSignature. */
const DIGITAL_SIGNATURE = 0x80;

/**
 * Returns true if a chain of certificates leads from a client certificate to an authority that the
 * operator trusts (RFC 5280 §6.1).
 *
 * OpenSSL cannot check that in the TLS handshake, because it would then send the names of the
 * authorities to the client. Clients on JSSE (Java), SChannel (Windows) and NSS (Firefox) would
 * then send no self-signed certificate, which `self_signed_tls_client_auth` needs.
 *
 * @param leaf the certificate from the TLS layer, with the client's other certificates in
 *   `issuerCertificate`
 * @param authorities the configured certificates: self-signed ones are trusted, others only help to
 *   build the path
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
    if (!isUsable(current, now)) return false;
    const child = current;
    // An expired issuer is left out, so that a renewed certificate with the same name and key is
    // used instead.
    const signers = issuers.filter(
      (issuer) => hasSigned(issuer, child) && mayIssue(issuer, below) && isUsable(issuer, now),
    );
    const issuer = signers.find(trusted) ?? signers[0];
    // OpenSSL has read the parameters of the signature before, and refused malformed ones.
    if (!issuer || !hasStrongSignature(current)) return false;
    if (trusted(issuer)) return true;
    current = issuer;
  }
  return false;
}

/**
 * Lists the certificates of issuers that a client sent together with its own certificate. Returns
 * undefined if there are too many.
 */
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

/**
 * Checks that a certificate is valid now, that its key is long enough, and that every critical
 * extension is known.
 */
function isUsable(certificate: X509Certificate, now: Date): boolean {
  if (!(now >= certificate.validFromDate && now <= certificate.validToDate)) return false;
  const { modulusLength = SHORTEST_RSA } = certificate.publicKey.asymmetricKeyDetails ?? {};
  if (modulusLength < SHORTEST_RSA) return false;
  return extensionsOf(certificate).every(
    ({ extnID, critical }) => UNDERSTOOD.has(extnID) || !(critical || extnID === NAME_CONSTRAINTS),
  );
}

/**
 * Returns true if a certificate was signed by a strong algorithm. A trusted authority is not
 * checked, because its own signature proves nothing. Without parameters, RSASSA-PSS hashes by SHA-1
 * (RFC 4055 §3.1).
 */
function hasStrongSignature({ raw }: X509Certificate): boolean {
  const { algorithmId, algorithmParams } = Certificate.fromBER(raw).signatureAlgorithm;
  if (algorithmId !== RSASSA_PSS) return STRONG_SIGNATURES.has(algorithmId);
  if (!algorithmParams) return false;
  const { hashAlgorithm } = new RSASSAPSSParams({ schema: algorithmParams });
  return STRONG_HASHES.has(hashAlgorithm.algorithmId);
}

/**
 * Returns true if a certificate may issue the certificate below it in the chain.
 * @param below the number of certificates between this issuer and the leaf (RFC 5280 §4.2.1.9)
 */
function mayIssue(issuer: X509Certificate, below: number): boolean {
  if (!issuer.ca || !isPurposeOfClients(issuer)) return false;
  const found = extensionsOf(issuer).find(({ extnID }) => extnID === BASIC_CONSTRAINTS);
  if (!found) return false;
  const { cA, pathLenConstraint } = BasicConstraints.fromBER(
    found.extnValue.valueBlock.valueHexView,
  );
  return cA && (typeof pathLenConstraint === 'number' ? pathLenConstraint : Infinity) >= below;
}

/** Checks that a certificate is for clients, and that its key may sign (RFC 5280 §4.2.1.12). */
function isForClients(leaf: X509Certificate): boolean {
  if (!isPurposeOfClients(leaf)) return false;
  const usage = extensionsOf(leaf).find(({ extnID }) => extnID === KEY_USAGE);
  const bits = usage?.extnValue.valueBlock.valueHexView.at(3);
  return bits === undefined || (bits & DIGITAL_SIGNATURE) !== 0;
}

/**
 * Returns true if the extended key usages of a certificate allow clients, or if it has none. As in
 * OpenSSL, the usages of an authority also limit the certificates that it issues.
 */
function isPurposeOfClients(certificate: X509Certificate): boolean {
  // In Node, the member `keyUsage` has the extended key usages.
  const purposes = certificate.keyUsage as readonly string[] | undefined;
  return !purposes || purposes.some((purpose) => FOR_CLIENTS.includes(purpose));
}

function extensionsOf(certificate: X509Certificate) {
  return Certificate.fromBER(certificate.raw).extensions ?? [];
}
