import type { SigningDomain } from './signing-domains.repository.js';

/**
 * A domain of letters, digits, dots and hyphens. Other characters could separate patterns in the
 * file, or match further names.
 */
const PLAIN_DOMAIN = /^[a-z0-9.-]+$/;

/**
 * Writes the file by which git verifies the signatures of one organization (ALLOWED SIGNERS of
 * ssh-keygen(1)). One authority signs the certificates of all organizations. So each line trusts
 * the authority only for e-mail addresses in a domain of this organization. The trust begins at the
 * time at which the organization got the domain, so that signatures of an earlier owner are
 * refused.
 *
 * @param authorities the published keys of the authority, as lines of a `.pub` file
 */
export function allowedSigners(
  organization: string,
  domains: readonly SigningDomain[],
  authorities: readonly string[],
): string {
  const lines = domains
    .filter(({ domain }) => PLAIN_DOMAIN.test(domain))
    .flatMap(({ domain, ownedSince }) =>
      authorities.map(
        (key) =>
          `*@${domain} cert-authority,namespaces="git",valid-after="${timestamp(ownedSince)}" ${key}`,
      ),
    );
  const comment = `# Signatures of git by members of the organization ${organization}`;
  return [comment, ...lines].map((line) => `${line}\n`).join('');
}

/** Returns a time in whole seconds, rounded up, in the form `YYYYMMDDHHMMSSZ` of ssh-keygen(1). */
function timestamp(time: Date): string {
  const whole = new Date(Math.ceil(time.getTime() / 1000) * 1000);
  return `${whole.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
}
