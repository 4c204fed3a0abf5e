import { describe, expect, it } from 'vitest';
import { signed } from '../src/docker/aws-signature.js';

/** The credentials and the time of the test suite that AWS publishes for Signature Version 4. */
const CREDENTIALS = {
  AccessKeyId: 'AKIDEXAMPLE',
  SecretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
const TIME = Date.parse('2015-08-30T12:36:00Z');
const REQUEST = {
  url: 'https://example.amazonaws.com/',
  headers: {},
  body: '',
  service: 'service',
  region: 'us-east-1',
};

describe('the signature of a request to AWS', () => {
  it.each([
    [
      'post-vanilla',
      REQUEST,
      'host;x-amz-date',
      '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    ],
    [
      'post-x-www-form-urlencoded',
      {
        ...REQUEST,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'Param1=value1',
      },
      'content-type;host;x-amz-date',
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
  ])('is that of the vector %s', (_, request, names, signature) => {
    const headers = signed(request, CREDENTIALS, TIME);
    expect(headers['authorization']).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
    );
    expect(headers['x-amz-date']).toBe('20150830T123600Z');
  });

  it('covers the session token', () => {
    const headers = signed(REQUEST, { ...CREDENTIALS, SessionToken: 'a-token' }, TIME);
    expect(headers['x-amz-security-token']).toBe('a-token');
    expect(headers['authorization']).toContain(
      'SignedHeaders=host;x-amz-date;x-amz-security-token',
    );
  });
});
