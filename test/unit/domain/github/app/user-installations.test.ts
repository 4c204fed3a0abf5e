import { describe, expect, it } from 'vitest';
import { GitHubFailure } from '#domain/github/app/github-failure.js';
import { administeredBy, type AskAsUser } from '#domain/github/app/user-installations.js';

const SEEN = {
  installations: [
    { id: 1, account: { id: 10, login: 'octo-org', type: 'Organization' } },
    { id: 2, account: { id: 20, login: 'octocat', type: 'User' } },
  ],
};

/** A stand-in for GitHub that lists two installations and knows no other path. */
const withoutProof: AskAsUser = (path, name) =>
  path.startsWith('/user/installations')
    ? Promise.resolve(Response.json(SEEN))
    : Promise.reject(new GitHubFailure(name, 404, 'other'));

describe('the installations that a GitHub user administers', () => {
  it('are unknown where GitHub itself answers 404 to the proof: to see is not enough', async () => {
    await expect(administeredBy(withoutProof, true)).rejects.toBeInstanceOf(GitHubFailure);
  });

  it('are those that the user sees where a server of the API has no proof to give', async () => {
    const { administered, onlySeen } = await administeredBy(withoutProof, false);
    expect([administered.map(({ id }) => id), onlySeen]).toEqual([[1, 2], []]);
  });
});
