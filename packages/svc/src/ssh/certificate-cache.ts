import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isValidAt, readCertificate, type SshCertificate } from '@svc/openssh';

/** The paths of the files for SSH in the folder of a server's secrets. */
export const SSH_FILES = {
  folder: 'ssh',
  identity: 'ssh/id',
  publicKey: 'ssh/id.pub',
  certificate: 'ssh/certificate.pub',
  /** The groups of hosts that the server sent with the certificate. */
  hostGroups: 'ssh/host-groups.json',
  /** The folder of the certificates for single hosts. Each is named after its set of groups. */
  sets: 'ssh/sets',
  /** The folder with a link for each host to its certificate. */
  hosts: 'ssh/hosts',
  lastRecheck: 'ssh/last-recheck',
} as const;

/** Milliseconds. A certificate that is valid for less time is renewed on use. */
const RENEWAL_MARGIN = 10 * 60_000;

/** Matches a principal of a group of hosts. */
const OF_GROUP = /^[^@]+@([a-z][a-z0-9-]*):[0-9a-f-]{36}$/;

/**
 * Matches the names of hosts that can have a file: those that `POST /v1/credentials/ssh` accepts.
 */
const HOST_NAME = /^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$/;

/** Returns the names of the groups of hosts whose principals a certificate has, sorted. */
export function groupsOf({ principals }: SshCertificate): string[] {
  const names = principals.map((name) => OF_GROUP.exec(name)?.[1] ?? '').filter(Boolean);
  return [...new Set(names)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Returns the name of a host if it can have a file; undefined otherwise. */
export function hostName(text: string | undefined): string | undefined {
  return text !== undefined && HOST_NAME.test(text) ? text : undefined;
}

/** Returns the path of the link to the certificate of a host. */
export function hostFile(host: string): string {
  return `${SSH_FILES.hosts}/${host}.pub`;
}

/** Reads a line in the format of `id-cert.pub`; undefined if it is no certificate. */
export function certificateIn(line: string): SshCertificate | undefined {
  try {
    return readCertificate(line);
  } catch {
    return undefined;
  }
}

/** The milliseconds within which the server is asked about a stored certificate once at most. */
const RECHECK_INTERVAL = 5_000;

/**
 * Returns true if the server should be asked now whether it has revoked the stored certificate. It
 * then records the time, so that many logins at the same time ask only once.
 *
 * @param folder the folder of the server's secrets
 */
export function takeRecheck(folder: string, now: number): boolean {
  const file = `${folder}/${SSH_FILES.lastRecheck}`;
  try {
    const last = statSync(file, { throwIfNoEntry: false });
    const age = now - (last?.mtimeMs ?? 0);
    if (Math.abs(age) < RECHECK_INTERVAL) return false;
    if (last) rmSync(file, { force: true });
    writeFileSync(file, '', { mode: 0o600, flag: 'wx' });
    return true;
  } catch {
    // Another login asks, or the folder cannot be written: this login goes on without the question.
    return false;
  }
}

/**
 * Returns true if a login can use a stored certificate without a renewal. It reads only a few small
 * files and loads no other code, because every `ssh` waits for it.
 *
 * @param folder the folder of the server's secrets
 * @param host the host of the login, if it has a {@link hostName}
 */
export function hasFreshCertificate(folder: string, now: number, host?: string): boolean {
  return hasCertificate(folder, host, (certificate) => isFresh(certificate, now));
}

/** Returns true if a stored certificate is valid now and serves a host. It may end soon. */
export function hasValidCertificate(folder: string, now: number, host: string): boolean {
  return hasCertificate(folder, host, (certificate) => isValidAt(certificate, now));
}

function hasCertificate(
  folder: string,
  host: string | undefined,
  isUsable: (certificate: SshCertificate) => boolean,
): boolean {
  const isIn = (file: string) => {
    const certificate = certificateIn(readText(`${folder}/${file}`) ?? '');
    return certificate !== undefined && isUsable(certificate);
  };
  try {
    if (!existsSync(`${folder}/${SSH_FILES.identity}`)) return false;
    if (host !== undefined && isIn(hostFile(host))) return true;
    if (host !== undefined && !isCovered(`${folder}/${SSH_FILES.hostGroups}`, host)) return false;
    return isIn(SSH_FILES.certificate);
  } catch {
    return false;
  }
}

/**
 * Returns true if a certificate needs no renewal yet. A certificate with groups of hosts may be
 * short, because it can end with a touch. So it needs a renewal only in the last third of its time.
 */
function isFresh(certificate: SshCertificate, now: number): boolean {
  const third = (certificate.validBefore - certificate.validAfter) / 3;
  const isOfGroup = groupsOf(certificate).length > 0;
  const margin = isOfGroup ? Math.min(RENEWAL_MARGIN, third) : RENEWAL_MARGIN;
  return isValidAt(certificate, now, margin);
}

/**
 * Returns true if the general certificate serves a host: the organization has no groups of hosts,
 * or the certificate has the principals of every group that matches the host.
 */
function isCovered(file: string, host: string): boolean {
  const text = readText(file);
  if (text === undefined) return true;
  const groups = JSON.parse(text) as readonly StoredHostGroup[];
  const matching = groups.filter(({ hosts }) => isHostOf(hosts, host));
  return matching.length > 0 && matching.every(({ carried }) => carried);
}

/** A group of hosts as the server sends it with a certificate. */
export interface StoredHostGroup {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly carried: boolean;
}

/** Returns true if patterns match a host by the rules of `ssh_config`. */
export function isHostOf(patterns: readonly string[], host: string): boolean {
  const matches = (pattern: string) => matchesPattern(pattern.toLowerCase(), host.toLowerCase());
  const isLeftOut = patterns.some(
    (pattern) => pattern.startsWith('!') && matches(pattern.slice(1)),
  );
  return !isLeftOut && patterns.some((pattern) => matches(pattern));
}

/**
 * Returns true if a pattern matches a text. After a mismatch it continues only from the last `*`,
 * so that no pattern makes it slow.
 */
function matchesPattern(pattern: string, text: string): boolean {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    if (pattern[p] === '*') [star, mark, p] = [p, t, p + 1];
    else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t]))
      [p, t] = [p + 1, t + 1];
    else if (star >= 0) [p, mark, t] = [star + 1, mark + 1, mark + 1];
    else return false;
  }
  return /^\**$/.test(pattern.slice(p));
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}
