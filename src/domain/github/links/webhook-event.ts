import { z } from 'zod';
import { ANY_INSTALLATION, installationOf } from '../app/answers.js';
import type { InstallationChange } from '../installations/github-installations.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The change that a webhook of GitHub reports, as far as the service uses it. */
export type WebhookEvent =
  | { readonly kind: 'ignored' }
  | { readonly kind: 'deleted'; readonly id: number }
  | { readonly kind: 'renamed'; readonly accountId: number; readonly owner: string }
  | {
      readonly kind: 'changed';
      readonly id: number;
      readonly action: string;
      readonly change: InstallationChange;
    };

const OF_INSTALLATION = z.object({
  action: z.string().max(100),
  installation: ANY_INSTALLATION,
  repository_selection: z.enum(['all', 'selected']).optional(),
});

const OF_TARGET = z.object({
  action: z.string().max(100),
  account: z.object({ id: z.int(), login: z.string().min(1).max(100) }),
});

const IGNORED = { kind: 'ignored' } as const;

/**
 * Reads the change from the body of a webhook whose signature was checked. It returns `ignored` for
 * a webhook that changes nothing in this service.
 *
 * @param name the value of the header `X-GitHub-Event`
 * @throws DomainError malformed_body
 */
export function webhookEvent(name: string, body: Buffer): WebhookEvent {
  if (name === 'installation_target') {
    const { action, account } = parsed(OF_TARGET, body);
    return action === 'renamed'
      ? { kind: 'renamed', accountId: account.id, owner: account.login }
      : IGNORED;
  }
  if (name !== 'installation' && name !== 'installation_repositories') return IGNORED;
  const { action, installation, repository_selection: selection } = parsed(OF_INSTALLATION, body);
  const known = installationOf(installation);
  if (!known) return IGNORED;
  const { id, owner, repositorySelection, changedAt } = known;
  if (name === 'installation' && action === 'deleted') return { kind: 'deleted', id };
  const change = {
    owner,
    repositorySelection: selection ?? repositorySelection,
    suspended: name === 'installation' ? suspensionOf(action) : undefined,
    changedAt,
  };
  return { kind: 'changed', id, action, change };
}

/**
 * Returns true if the action in a webhook suspends an installation, false if it resumes one, and
 * undefined for any other action.
 */
function suspensionOf(action: string): boolean | undefined {
  if (action === 'suspend') return true;
  return action === 'unsuspend' ? false : undefined;
}

function parsed<T>(schema: z.ZodType<T>, body: Buffer): T {
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    throw new DomainError('malformed_body', 'The body is not JSON.');
  }
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new DomainError('malformed_body', 'The body is not an event of this kind.');
}
