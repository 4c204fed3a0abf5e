import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isValidAt, readCertificate, type SshCertificate } from '@svc/openssh';
import type { Terminal } from '../terminal/terminal.js';

/** The paths of the files for SSH in the folder with the secrets for one server. */
export const SSH_FILES = {
  folder: 'ssh',
  identity: 'ssh/id',
  publicKey: 'ssh/id.pub',
  /**
   * The certificate, under the name at which `ssh-add`, `git commit -S` and libraries of SSH look
   * for the certificate of the key `id`.
   */
  certificate: 'ssh/id-cert.pub',
  /**
   * The name of the certificate until version 0.13. It is a link for one more version, because the
   * block in `~/.ssh/config` may still name it.
   */
  earlierCertificate: 'ssh/certificate.pub',
  /**
   * The serials of the certificates that this machine got and that are still valid. The file is not
   * in the folder `ssh`, so that `svc setup ssh --remove` leaves it for `svc logout --revoke`.
   */
  issued: 'ssh-issued.json',
  /**
   * The groups of hosts that the server sent with the certificate for all hosts, a JSON list of
   * {@link StoredHostGroup}. There is no file if the organization has no groups of hosts.
   */
  hostGroups: 'ssh/host-groups.json',
  /**
   * The folder of the certificates that are not for all hosts. Each is named after the groups of
   * hosts for which it is valid.
   */
  sets: 'ssh/sets',
  /** The folder that has, for each host, a link to the certificate for that host. */
  hosts: 'ssh/hosts',
  lastRecheck: 'ssh/last-recheck',
  /**
   * The file about the ssh-agents that hold the key and the certificate. It exists if there is such
   * an agent, or if `svc setup ssh --agent` was chosen.
   */
  agents: 'ssh/agents.json',
} as const;

/** The remaining milliseconds of validity below which a certificate is renewed when it is used. */
const RENEWAL_MARGIN = 10 * 60_000;

/**
 * Matches a principal of a certificate for a group of hosts: `LOGIN@GROUP:ORGANIZATION`. It
 * captures the name of the group.
 */
const OF_GROUP = /^[^@]+@([a-z][a-z0-9-]*):[0-9a-f-]{36}$/;

/**
 * Matches the names of hosts that may become the name of a file: those that `POST
 * /v1/credentials/ssh` accepts.
 */
const HOST_NAME = /^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$/;

/**
 * Returns the names of the groups of hosts for which a certificate is valid, by its principals,
 * sorted.
 */
export function groupsOf({ principals }: SshCertificate): string[] {
  const names = principals.map((name) => OF_GROUP.exec(name)?.[1] ?? '').filter(Boolean);
  return [...new Set(names)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Returns the name of a host if it may become the name of a file; undefined otherwise. */
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

/**
 * The shortest time in milliseconds between two requests that ask the server if it has revoked a
 * stored certificate.
 */
const RECHECK_INTERVAL = 5_000;

/**
 * Returns true if the server should be asked now whether it has revoked the stored certificate. If
 * so, it records the time, so that many SSH logins at the same moment ask only once.
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
    // Another SSH login asks already, or the folder cannot be written. This SSH login continues
    // without asking.
    return false;
  }
}

/**
 * Returns true if an SSH login can use a stored certificate without a renewal. It reads only a few
 * small files and loads no other code, because every `ssh` waits for it.
 *
 * @param folder the folder of the server's secrets
 * @param host the host to log in to, if it has a {@link hostName}
 */
export function hasFreshCertificate(folder: string, now: number, host?: string): boolean {
  return hasCertificate(folder, host, (certificate) => isFresh(certificate, now));
}

/** Returns true if an agent holds the key, or if `svc setup ssh --agent` was chosen. */
export function hasAgents(folder: string): boolean {
  return existsSync(`${folder}/${SSH_FILES.agents}`);
}

/**
 * The end of the line of a stored certificate that lacks a group of its host, because the group
 * demands a touch of the security key. `ssh` reads it as a part of the comment.
 */
export const LACKS_GROUP = ' touch-needed';

/**
 * Returns true if an SSH login uses a certificate that lacks a group of the host, because the group
 * demands a touch of the security key. Some accounts of the host then refuse the login.
 */
export function lacksGroup(folder: string, now: number, host: string): boolean {
  const line = (readText(`${folder}/${hostFile(host)}`) ?? '').trimEnd();
  const certificate = line.endsWith(LACKS_GROUP) ? certificateIn(line) : undefined;
  return certificate !== undefined && isUsableAt(certificate, now);
}

/** Says how to get the groups that the certificate for a host lacks, if it lacks any. */
export function tellOfTouch(
  terminal: Pick<Terminal, 'warn'>,
  folder: string,
  now: number,
  host: string | undefined,
): void {
  if (host === undefined || !lacksGroup(folder, now, host)) return;
  terminal.warn(
    `svc: Some logins of ${host} need a touch of your security key first; run: svc ssh cert ${host}`,
  );
}

/** Returns true if a stored certificate is valid now for a host, even if it expires soon. */
export function hasValidCertificate(folder: string, now: number, host: string): boolean {
  return hasCertificate(folder, host, (certificate) => isUsableAt(certificate, now));
}

/**
 * The milliseconds by which the clock of this machine may be behind that of the server. If it is
 * behind by more, the server refuses every request.
 */
const SLOWEST_CLOCK = 300_000;

/**
 * Returns true if hosts accept a certificate now and for `margin` milliseconds more. The server
 * issues no certificate for the future. So if one seems to begin in a few minutes, the clock of
 * this machine is slow, and the certificate is valid.
 */
function isUsableAt(certificate: SshCertificate, now: number, margin = 0): boolean {
  const isOfSlowClock = certificate.validAfter - now <= SLOWEST_CLOCK;
  return isValidAt(
    certificate,
    isOfSlowClock ? Math.max(now, certificate.validAfter) : now,
    margin,
  );
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
 * Returns true if a certificate needs no renewal yet. A certificate for groups of hosts may be
 * valid for a short time only, because a group can demand a recent touch of the key. So it needs a
 * renewal only in the last third of its time, and never before its last 10 minutes.
 */
function isFresh(certificate: SshCertificate, now: number): boolean {
  const third = (certificate.validBefore - certificate.validAfter) / 3;
  const isOfGroup = groupsOf(certificate).length > 0;
  const margin = isOfGroup ? Math.min(RENEWAL_MARGIN, third) : RENEWAL_MARGIN;
  return isUsableAt(certificate, now, margin);
}

/**
 * Returns true if the certificate for all hosts is valid for a host. That is so if the organization
 * has no groups of hosts. Otherwise the host must be in at least one group, and the certificate
 * must have the principals of all groups of the host.
 */
function isCovered(file: string, host: string): boolean {
  const text = readText(file);
  if (text === undefined) return true;
  const groups = JSON.parse(text) as readonly StoredHostGroup[];
  const matching = groups.filter(({ hosts }) => isHostOf(hosts, host));
  return matching.length > 0 && matching.every(({ carried }) => carried);
}

/**
 * A group of hosts as the server sends it with a certificate. `carried` is true if the certificate
 * is valid for the hosts of the group.
 */
export interface StoredHostGroup {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly carried: boolean;
}

/** Returns true if patterns of host names match a host by the rules of `ssh_config`. */
export function isHostOf(patterns: readonly string[], host: string): boolean {
  const matches = (pattern: string) => matchesPattern(pattern.toLowerCase(), host.toLowerCase());
  const isLeftOut = patterns.some(
    (pattern) => pattern.startsWith('!') && matches(pattern.slice(1)),
  );
  return !isLeftOut && patterns.some((pattern) => matches(pattern));
}

/**
 * Returns true if a pattern with `*` and `?` matches a text. After a mismatch it continues only
 * from the last `*`, so that no pattern makes it slow.
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
