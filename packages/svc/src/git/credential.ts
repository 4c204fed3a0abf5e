/** The description of a credential that git sends to a helper (git-credential(1)). */
export interface CredentialRequest {
  readonly protocol: string;
  readonly host: string;
  /**
   * The path of the repository, `owner/repository.git`. Git sends it if `credential.useHttpPath` is
   * set.
   */
  readonly path: string;
  readonly password: string;
}

/** A repository at GitHub. */
export interface GitTarget {
  readonly owner: string;
  readonly repository: string;
}

/** Parses the lines that git sends. If a name occurs twice, its last value counts. */
export function readCredential(text: string): CredentialRequest {
  const fields = new Map(
    text.split('\n').map((line): [string, string] => {
      const end = line.indexOf('=');
      return [line.slice(0, end), line.slice(end + 1)];
    }),
  );
  const of = (name: string) => fields.get(name) ?? '';
  return { protocol: of('protocol'), host: of('host'), path: of('path'), password: of('password') };
}

/**
 * Returns true if git asks for credentials of the GitHub at the given URL, with the same protocol.
 */
export function isFor(webUrl: string, { protocol, host }: CredentialRequest): boolean {
  const url = new URL(webUrl);
  return protocol === url.protocol.slice(0, -1) && host.toLowerCase() === url.host;
}

const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;

/** Returns the owner and the repository that a path of git names; undefined for any other path. */
export function targetOf(path: string): GitTarget | undefined {
  const [owner = '', name = '', ...more] = path.replace(/\/+$/, '').split('/');
  // Git LFS and other tools add their own path after that of the repository.
  const isKnown = more.length === 0 || name.endsWith('.git');
  const repository = name.replace(/\.git$/, '');
  return isKnown && NAME.test(owner) && NAME.test(repository) ? { owner, repository } : undefined;
}

/** Returns the answer to git as lines. Older versions of git ignore the time of expiry. */
export function credentialLines(token: string, expiresAt: string): string {
  const seconds = Math.floor(Date.parse(expiresAt) / 1000);
  const lines = ['username=x-access-token', `password=${token}`, `password_expiry_utc=${seconds}`];
  return `${lines.join('\n')}\n`;
}
