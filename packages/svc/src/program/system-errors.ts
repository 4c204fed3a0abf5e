import { errorCode } from './failure.js';

/**
 * The reasons for which a file cannot be used, by the code of the system error. No code of an error
 * is shown to a user.
 */
const FILE_REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'your part of the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  ENOENT: 'it, or its folder, does not exist',
  EEXIST: 'it exists already',
  ELOOP: 'its links form a circle',
  ENAMETOOLONG: 'its name is too long',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EBUSY: 'another program uses it',
  ETXTBSY: 'another program uses it',
  EIO: 'the disk does not answer as it should',
  ESTALE: 'its disk of the network is away',
  ENOTEMPTY: 'the folder is not empty',
  EFBIG: 'it is too large',
  E2BIG: 'the arguments are too long',
  ENOMEM: 'the memory is full',
};

/** Returns the reason of a system error for which a file cannot be used, in words. */
export function fileReason(error: unknown): string {
  return FILE_REASONS[errorCode(error) ?? ''] ?? 'the system refuses it';
}

/** Returns the next step after a system error for which a file cannot be used. */
export function fileRemedy(error: unknown): string {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '');
  return isFull ? 'Make room on the disk, and run it again.' : CHECK_FILE;
}

const CHECK_FILE = 'Check the owner and the mode of the file.';

/** The next step after a failure of the network. */
export const CHECK_NETWORK = 'Check the network, and the URL of the server (svc status).';

const OTHER_TLS = 'Check the URL of the server, and its port.';
const OWN_CA = 'If your organization has its own CA, set NODE_EXTRA_CA_CERTS to its PEM file.';
const OFFLINE = 'Check the network of this machine, and its VPN.';

/** A reason for which a server cannot be reached, and the next step. */
export type NetworkReason = readonly [reason: string, whatToDo: string];

const NETWORK_REASONS: Readonly<Record<string, NetworkReason>> = {
  EAI_AGAIN: ['the name server does not answer (DNS)', CHECK_NETWORK],
  EAI_FAIL: ['the name server does not answer (DNS)', CHECK_NETWORK],
  ECONNREFUSED: ['the connection is refused', CHECK_NETWORK],
  ECONNRESET: ['the connection was closed before the answer', CHECK_NETWORK],
  ECONNABORTED: ['the connection was closed before the answer', CHECK_NETWORK],
  EPIPE: ['the connection was closed before the answer', CHECK_NETWORK],
  EHOSTUNREACH: ['no way leads to it', OFFLINE],
  EHOSTDOWN: ['it is switched off', OFFLINE],
  ENETUNREACH: ['this machine has no network', OFFLINE],
  ENETDOWN: ['this machine has no network', OFFLINE],
  EADDRNOTAVAIL: ['this machine has no network', OFFLINE],
  EACCES: ['a firewall of this machine forbids it', OFFLINE],
  EPERM: ['a firewall of this machine forbids it', OFFLINE],
  EMFILE: ['too many files are open', 'Close programs, and try again.'],
  ENFILE: ['too many files are open', 'Close programs, and try again.'],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    'its TLS certificate is for another name',
    'Check the URL of the server.',
  ],
  EPROTO: ['it does not speak TLS there', OTHER_TLS],
  ERR_SSL_WRONG_VERSION_NUMBER: ['it does not speak TLS there', OTHER_TLS],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ['it does not speak TLS there', OTHER_TLS],
};

/** Returns true if the error of a request means that no answer came in time. */
export function isTimeout(error: unknown): boolean {
  const name = (error as Error | undefined)?.name;
  return name === 'TimeoutError' || errorCode(error) === 'ETIMEDOUT';
}

/**
 * Returns the reason for which a server cannot be reached, and the next step.
 *
 * @param error the error of the request
 * @param clock the local time as a text, because a wrong clock makes TLS certificates invalid
 */
export function networkReason(error: unknown, hostname: string, clock: string): NetworkReason {
  if (isTimeout(error)) return ['no answer in time', CHECK_NETWORK];
  const code = errorCode(error) ?? '';
  if (code.startsWith('HPE_')) return ['what answers there is no web server', OTHER_TLS];
  const known = NETWORK_REASONS[code];
  if (known) return known;
  if (/^(?:ENOTFOUND|EAI_)/.test(code)) return [`no address for ${hostname} (DNS)`, CHECK_NETWORK];
  const checkClock = `Check the clock of this machine, which shows ${clock}, or tell an admin.`;
  if (code === 'CERT_HAS_EXPIRED') return ['its TLS certificate has expired', checkClock];
  if (code === 'CERT_NOT_YET_VALID') return ['its TLS certificate is not valid yet', checkClock];
  if (/CERT|SIGNATURE|ISSUER/.test(code)) return ['its TLS certificate is not trusted', OWN_CA];
  if (/SSL|TLS/.test(code)) return ['the TLS handshake failed', CHECK_NETWORK];
  return ['the request failed', CHECK_NETWORK];
}

/** Returns the message of an error without the code of a system error, such as ENOENT. */
export function messageWithoutCode(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const isCode = /^(?:E[A-Z\d]{2,}|(?:EAI|ERR|UND_ERR|HPE|CERT|DEPTH|UNABLE)_\w+)$/;
  return text
    .split(' ')
    .filter((word) => !isCode.test(word.replaceAll(/[^\w]/g, '')))
    .join(' ');
}
