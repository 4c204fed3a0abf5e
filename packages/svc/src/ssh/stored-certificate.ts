import { copyFileSync, linkSync, lstatSync, renameSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isValidAt, type SshCertificate } from '@svc/openssh';
import type { PrivateFolder } from '../files/private-folder.js';
import { now, randomId } from '../program/clock.js';
import { certificateIn, SSH_FILES } from './certificate-cache.js';

/** Returns the stored certificate for all hosts; undefined if there is none. */
export function storedCertificate(folder: PrivateFolder): SshCertificate | undefined {
  adoptEarlierCertificate(folder);
  return certificateIn(folder.read(SSH_FILES.certificate) ?? '');
}

/** Stores the certificate for all hosts. The earlier name of its file becomes a link to it. */
export function storeCertificate(folder: PrivateFolder, line: string): void {
  folder.write(SSH_FILES.certificate, `${line}\n`);
  linkEarlierName(folder);
}

/**
 * Gives the certificate file of an earlier version of the command the present name. So the first
 * SSH login after an update of the command needs no new certificate.
 */
export function adoptEarlierCertificate(folder: PrivateFolder): void {
  const present = folder.file(SSH_FILES.certificate);
  const earlier = folder.file(SSH_FILES.earlierCertificate);
  if (statusOf(present) || statusOf(earlier)?.isFile() !== true) return;
  try {
    // Unlike a rename, this link never replaces what another process has just stored.
    linkSync(earlier, present);
  } catch (error) {
    if (statusOf(present)) return;
    throw error;
  }
  linkEarlierName(folder);
}

const statusOf = (path: string) => lstatSync(path, { throwIfNoEntry: false });

function linkEarlierName(folder: PrivateFolder): void {
  linkTo(folder.file(SSH_FILES.earlierCertificate), basename(SSH_FILES.certificate));
}

/**
 * Makes a symbolic link, and replaces the file or link that has its name. If the system refuses
 * links, as Windows may, it makes a copy of the file.
 *
 * @param target the file, relative to the folder of the link
 */
export function linkTo(link: string, target: string): void {
  const next = `${link}.${randomId()}`;
  try {
    symlinkSync(target, next);
  } catch {
    copyFileSync(join(dirname(link), target), next);
  }
  renameSync(next, link);
}

/** A certificate that this machine got. `until` is its end in milliseconds since 1970. */
interface IssuedCertificate {
  readonly serial: string;
  readonly until: number;
}

/**
 * Records the serial of a new certificate, so that `svc logout --revoke` can revoke it even if a
 * later one has replaced its file.
 */
export function recordIssued(folder: PrivateFolder, line: string): void {
  const certificate = certificateIn(line);
  if (!certificate) return;
  const own = { serial: certificate.serial.toString(), until: certificate.validBefore };
  folder.writeJson(SSH_FILES.issued, { certificates: [...issuedCertificates(folder), own] });
}

/** Returns the serials of the certificates that this machine got and that are still valid. */
export function issuedSerials(folder: PrivateFolder): string[] {
  const stored = storedCertificate(folder); // an earlier version recorded no serials
  const own = stored && isValidAt(stored, now()) ? [stored.serial.toString()] : [];
  return [...new Set([...issuedCertificates(folder).map(({ serial }) => serial), ...own])];
}

function issuedCertificates(folder: PrivateFolder): IssuedCertificate[] {
  const recorded: { readonly certificates?: unknown } | undefined = folder.readJson(
    SSH_FILES.issued,
  );
  const { certificates } = recorded ?? {};
  if (!Array.isArray(certificates)) return [];
  return (certificates as readonly IssuedCertificate[]).filter(
    ({ serial, until }) => /^\d{1,20}$/.test(serial) && until > now(),
  );
}
