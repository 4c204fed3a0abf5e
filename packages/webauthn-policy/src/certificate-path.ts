import type { TrustAnchor } from './trust-anchor.js';
import { Refusal } from './refusal.js';
import {
  ATTRIBUTE,
  EXTENSION,
  mayBeRoot,
  subjectValues,
  type ParsedCertificate,
} from './certificate.js';

/**
 * The beginning of the names of the vendor's authorities that attest FIDO keys. The vendor's common
 * root also signs authorities for PIV, OpenPGP and others, which attest no FIDO key.
 */
const FIDO_CA_PREFIX = 'Yubico FIDO Attestation ';

/**
 * The largest number of certificates in a chain. The limit is far above what any vendor needs. It
 * bounds how many signatures the service verifies for one request.
 */
const LONGEST_CHAIN = 5;

/**
 * The extensions of a certificate that this policy evaluates. A certificate with any other critical
 * extension is refused (RFC 5280 §4.2).
 */
const UNDERSTOOD: ReadonlySet<string> = new Set(Object.values(EXTENSION));

/**
 * Verifies the chain from an attestation certificate to a trusted root (RFC 5280 §6.1, as far as
 * attestation needs it).
 *
 * @param chain `x5c`: the leaf first, each certificate issued by the next, without the root
 * @param now the time of enrollment
 * @returns the trusted root in which the chain ends
 * @throws Refusal if there is no such chain
 */
export function verifyPath(
  chain: readonly ParsedCertificate[],
  anchors: readonly TrustAnchor[],
  now: Date,
): TrustAnchor {
  if (chain.length > LONGEST_CHAIN) throw new Refusal('x5c is too long.');
  chain.forEach((certificate, depth) => {
    refuseRoot(certificate, depth, anchors);
    checkValidity(certificate, now);
    checkCriticalExtensions(certificate);
    if (depth > 0) checkIssuer(certificate, depth - 1);
  });

  chain.slice(0, -1).forEach((certificate, depth) => {
    const issuer = chain[depth + 1];
    if (!issuer || !certificate.x509.checkIssued(issuer.x509)) {
      throw new Refusal('x5c is not a chain: a certificate was not issued by the next.');
    }
    if (!certificate.x509.verify(issuer.x509.publicKey)) throw notSigned();
  });
  const anchor = findAnchor(chain, anchors);
  checkIssuer(anchor.certificate, chain.length - 1, mayBeRoot(anchor.certificate));
  if (anchor.fidoCaRequired && !chain.slice(1).some(isFidoCa)) {
    throw new Refusal(`The path does not run through a CA named "${FIDO_CA_PREFIX}...".`);
  }
  return anchor;
}

/**
 * Completes the chain of an attestation certificate (leaf) that came without other certificates, by
 * the known intermediate certificates of the trusted roots. It verifies nothing: the result must
 * still pass {@link verifyPath}.
 *
 * @returns the leaf first, each certificate issued by the next, the root left out
 * @throws Refusal if the certificate of an issuer is not known
 */
export function completeChain(
  leaf: ParsedCertificate,
  anchors: readonly TrustAnchor[],
): ParsedCertificate[] {
  const chain = [leaf];
  let last = leaf;
  while (chain.length <= LONGEST_CHAIN && !isLast(last, anchors)) {
    last = findIntermediate(last, anchors);
    chain.push(last);
  }
  return chain;
}

/**
 * Returns true if no intermediate certificate is needed after a certificate: its issuer has the
 * name of a trusted root, or is the certificate itself.
 */
function isLast({ x509 }: ParsedCertificate, anchors: readonly TrustAnchor[]): boolean {
  return (
    x509.subject === x509.issuer ||
    anchors.some(({ certificate }) => x509.checkIssued(certificate.x509))
  );
}

/**
 * Finds the intermediate certificate that issued a certificate. If several have the name of the
 * issuer, the one whose key made the signature is returned, or else the first one.
 * @throws Refusal if no certificate has the name
 */
function findIntermediate(
  { x509 }: ParsedCertificate,
  anchors: readonly TrustAnchor[],
): ParsedCertificate {
  const namesakes = anchors
    .flatMap(({ intermediates }) => intermediates)
    .filter((intermediate) => x509.checkIssued(intermediate.x509));
  const issuer =
    namesakes.find((intermediate) => x509.verify(intermediate.x509.publicKey)) ?? namesakes[0];
  if (issuer) return issuer;
  const name = nameInError(x509.issuer);
  throw new Refusal(
    `This service does not have the certificate of the issuer "${name}", and so cannot tell who made this key. Ask the operator to add the vendor's intermediate certificate, or use a key of another batch.`,
  );
}

/** The longest name of an issuer in an error, in characters. */
const LONGEST_NAME = 120;

/**
 * Matches the characters of a name that an error leaves out: control and format characters, single
 * halves of surrogate pairs, and separators of lines. Such characters are invisible, or change the
 * direction of the text around them.
 */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Renders the name of an issuer on one line, cut to {@link LONGEST_NAME} characters. Node writes
 * the attributes of a name on lines of their own.
 */
function nameInError(issuer: string): string {
  const line = issuer.replaceAll('\n', ', ').replaceAll(NOT_SHOWN, '');
  return Array.from(line).slice(0, LONGEST_NAME).join('');
}

/**
 * Refuses a root in the client's statement, even a trusted one, because a client can send a copy of
 * any root. Trust comes only from the roots that the service itself has.
 */
function refuseRoot(
  certificate: ParsedCertificate,
  depth: number,
  anchors: readonly TrustAnchor[],
): void {
  const isPinned = anchors.some((anchor) =>
    anchor.certificate.x509.raw.equals(certificate.x509.raw),
  );
  const isSelfIssued = certificate.x509.subject === certificate.x509.issuer;
  if (!isPinned && !isSelfIssued) return;
  throw new Refusal(
    depth === 0 ? 'The attestation certificate is self-signed.' : 'x5c must not contain a root.',
  );
}

function checkValidity({ x509 }: ParsedCertificate, now: Date): void {
  if (!(now >= x509.validFromDate && now <= x509.validToDate)) {
    throw new Refusal('A certificate in x5c is expired or not yet valid.');
  }
}

function checkCriticalExtensions({ extensions }: ParsedCertificate): void {
  for (const [oid, { critical }] of extensions) {
    if (critical && !UNDERSTOOD.has(oid)) {
      throw new Refusal(`A certificate in x5c has an unknown critical extension, ${oid}.`);
    }
  }
}

/**
 * Checks that a certificate may issue the certificate before it in the chain.
 * @param below the number of intermediate certificates between this issuer and the leaf
 * @param maySign true if its Key Usage allows it to sign certificates
 */
function checkIssuer(
  issuer: ParsedCertificate,
  below: number,
  maySign = issuer.signsCertificates,
): void {
  if (issuer.version !== 3 || issuer.basicConstraints?.ca !== true) {
    throw new Refusal('An issuer in the path is not a CA.');
  }
  if (!maySign) {
    throw new Refusal('An issuer in the path may not sign certificates.');
  }
  if (issuer.basicConstraints.pathLength < below) {
    throw new Refusal('The path is longer than an issuer in it allows.');
  }
}

/**
 * Finds the trusted root that issued the last certificate of a chain: it has the name of the
 * issuer, and its key made the signature.
 * @throws Refusal if there is no such root
 */
function findAnchor(
  chain: readonly ParsedCertificate[],
  anchors: readonly TrustAnchor[],
): TrustAnchor {
  const last = chain.at(-1)?.x509;
  const namesakes = anchors.filter(({ certificate }) => last?.checkIssued(certificate.x509));
  if (namesakes.length === 0) throw new Refusal('The path does not end in a pinned root.');
  const anchor = namesakes.find(({ certificate }) => last?.verify(certificate.x509.publicKey));
  if (!anchor) throw notSigned();
  return anchor;
}

function notSigned(): Refusal {
  return new Refusal("A certificate in x5c bears its issuer's name, not its signature.");
}

function isFidoCa(certificate: ParsedCertificate): boolean {
  const [name, ...others] = subjectValues(certificate, ATTRIBUTE.commonName);
  return others.length === 0 && name?.startsWith(FIDO_CA_PREFIX) === true;
}
