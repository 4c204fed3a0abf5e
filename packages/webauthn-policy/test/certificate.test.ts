import { expect, it, describe } from 'vitest';
import { parseCertificate, Refusal } from '@svc/webauthn-policy';

describe('a certificate of an attestation', () => {
  // The fuzzer (`npm run -s fuzz -- certificate`) found these certificates.
  it.each([
    [
      'with extensions before version 3 (RFC 5280 §4.1.2.9)',
      'not of version 3',
      [
        'MIIBGzCBwaAEAgLEsAIJAa9g/2WrjdWnMAoGCCqGSM49BAMCMAAwHhcNMjYwMTE0MTIwMDAwWhcN',
        'MzYwMTEzMTIwMDAwWjACMQAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwx2KtMV+mEDpSPc2c',
        'NME6uTF5um8NcpJHua34eDvax4Gl5QWsF1nZMsPlYPcmifOBiKc7mX/JpIwSHVEa/kMsoyEwHzAN',
        'BgRVHRMKAQH/BAIwADAOBgNVHQ8BAf8EBAMCAQYwCgYIKoZIzj0EAwIDSQAwRgIhAOukZeB8SP5l',
        '+oo1J22JWxcGz2o7zIUedEwZA16ImYiQAiEAnfBylo+vQw8FuYl6e092E9UYfi1tk8ksmec0QOqJ',
        'o6w=',
      ],
    ],
    [
      'without an issuer (RFC 5280 §4.1.2.4)',
      'names no issuer',
      [
        'MIIBDzCBtwIJAfwvncxxI2F9MAoGCCqGSM49BAMCMAIxADAeFw0yNjAxMTQxMjAwMDBaFw0zNjAx',
        'MTMxMjAwMDBaMCgxJjAkBgNVBAMMHVNvZnR3YXJlIEtleSBBdHRlc3RhdGlvbiBSb290MFAwCgYI',
        'KoZIzj0DAQcDQgAES/AWsO5REP1JCHrai8NZ0QWYYlUcD9T9xCLasw9UO/T6fm9y7OO3vuGcV6wl',
        'OqOYn/jk9QyfHVyc7ohKhw4hrjAKBggqhkjOPQQDAgNHADBEAiBO4hAU/X4zEV3haj0uU2XKSLwr',
        'jKjxyernIXkODUtgiwIgddAM7yReUf8hZajUvRZ4P7DNdLmIk1WShcuGwPZ6vsw=',
      ],
    ],
    [
      'that OpenSSL does not take for an authority',
      'malformed extensions',
      [
        'MIIBRzCB7aADAgECAgkBr2D/ZauN1acwCgYIKoZIzj0EAwIwAjEAMB4XDTI2MDExNDEyMDAwMFoX',
        'DTM2MDExMzEyMDAwMFowKDEmMCQGA1UEAwwdU29mdHdhcmUgS2V5IEF0dGVzdGF0aW9uIFJvb3Qw',
        'WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwx2KtMV+mEDpSPc2cNME6uTF5um8NcpJHua34eDva',
        'x4Gl5QWsF1nZMsPlYPcmifOBiKc7mX/JpIwSHVEa/kMsoyYwJDASBgNVHRMBAf8ECDAGAQT/4oSq',
        'MA4GA1UdDwEB/wQEAwIBBjAKBggqhkjOPQQDAgNJADBGAiEA66Rl4HxI/mX6ijUnbYlbFwbPajvM',
        'hR50TBkDXoiZiJACIQCd8HKWj69DDwW5iXp7T3YT1Rh+LW2TySyZ5zRA6omjrA==',
      ],
    ],
    [
      'whose Key Usage is a malformed time',
      'malformed Key Usage',
      [
        'MIIBRzCB7aADAgECAgkBr2D/ZauN1acwCgYIKoZIzj0EAwIwAjEAMB4XDTI2MDExNDEyMDAwMFoX',
        'DTM2MDExMzEyMDAwMFowKDEmMCQGA1UEAwwdU29mdHdhcmUgS2V5IEF0dGVzdGF0aW9uIFJvb3Qw',
        'WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwx2KtMV+mEDpSPc2cNME6uTF5um8NcpJHua34eDva',
        'x4Gl5QWsF1nZMsPlYPcmifOBiKc7mX/JpIwSHVEa/kMsoyYwJDASBgNVHRMBAf8ECDAGAQT/4oSq',
        'MA4GA1UdDwEB/wQEGAI5CTAKBggqhkjOPQQDAgNJADBGAiEA66Rl4HxI/mX6ijUnbYlbFwbPajvM',
        'hR50TBkDXoiZiJACIQCd8HKWj69DDwW5iXp7T3YT1Rh+LW2TySyZ5zRA6omjrA==',
      ],
    ],
  ])('%s is refused', (_, reason, lines) => {
    const read = () => parseCertificate(Buffer.from(lines.join(''), 'base64'));
    expect(read).toThrow(Refusal);
    expect(read).toThrow(reason);
  });
});
