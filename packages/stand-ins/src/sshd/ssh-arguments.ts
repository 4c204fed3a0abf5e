/** The files and the port for a login that the demo itself makes by `ssh`. */
export interface SshLogin {
  readonly port: number;
  /** The path of a private key. */
  readonly identity: string;
  readonly certificate: string;
}

/**
 * Returns the options of `ssh` for a login with one certificate. The user's own configuration and
 * agent are not used.
 */
export function sshArguments({ port, identity, certificate }: SshLogin): string[] {
  const options = [
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    `CertificateFile="${certificate}"`,
  ];
  const values = options.flatMap((option) => ['-o', option]);
  return ['-F', 'none', '-p', String(port), '-i', identity, ...values];
}
