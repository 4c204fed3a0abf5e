import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { fileReason, messageWithoutCode, networkReason } from '../src/program/system-errors.js';

const CODES = [
  ...Object.keys(constants.errno),
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_NODATA',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_HEADERS_OVERFLOW',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_INVALID_URL',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'HPE_INVALID_CONSTANT',
];
/** Matches words that only a programmer reads, such as ENOENT. */
const CODE = /\b(?:E[A-Z]{3,}|[A-Z]+_[A-Z_]+)\b/;

describe('the sentences for errors of the system', () => {
  it.each(CODES)('never name %s itself', (code) => {
    const error = new Error('the request failed', {
      cause: Object.assign(new Error(code), { code }),
    });
    const reason = networkReason(error, 'login.example.com', '2026-01-01 00:00');
    for (const text of [...reason, fileReason(error)]) {
      expect(text).not.toBe('');
      expect(text.replace('NODE_EXTRA_CA_CERTS', '')).not.toMatch(CODE);
    }
    expect(messageWithoutCode(new Error(`${code}: it failed, open '/x'`))).toBe(
      "it failed, open '/x'",
    );
  });

  it('ask for the clock where a TLS certificate is not valid yet', () => {
    const cause = { code: 'CERT_NOT_YET_VALID' };
    const [reason, whatToDo] = networkReason(
      new TypeError('x', { cause }),
      'a',
      '2019-01-01 00:00',
    );
    expect(reason).toContain('not valid yet');
    expect(whatToDo).toContain('which shows 2019-01-01 00:00');
  });
});
