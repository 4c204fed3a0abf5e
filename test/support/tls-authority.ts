import { GeneralName, GeneralNames } from 'pkijs';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { basicConstraints, extension, issueCertificate } from '@svc/stand-ins/certificates';

/**
 * The certificate of a test authority, which no machine trusts, and a server certificate that it
 * issued, with its key. All three are in PEM.
 */
export interface TlsAuthority {
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
}

/**
 * Creates an authority and a server certificate, which is valid for one hour.
 * @param name the authority's name. Two authorities need different names, because clients find the
 * issuer of a certificate by its name.
 */
export function makeTlsAuthority(
  name = 'Private authority',
  hosts: readonly string[] = ['localhost'],
): TlsAuthority {
  const authority = issueAuthority(name, new Date());
  const names = new GeneralNames({
    names: hosts.map((value) => new GeneralName({ type: 2, value })),
  });
  const server = issueCertificate(
    {
      subject: [['CN', 'localhost']],
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [basicConstraints(false), extension('2.5.29.17', names.toSchema().toBER())],
    },
    authority,
  );
  const key = server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { ca: authority.pem, key, cert: server.pem };
}
