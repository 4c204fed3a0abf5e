import { describe, expect, it } from 'vitest';
import { reachableFrom, sourceFiles, type SourceFile } from './import-graph.js';

const files = sourceFiles('src');
const REVOCATION = 'src/domain/access-revocation/access-revocation.service.ts';

/**
 * The names of the classes that implement `Revocable`: each can end what one kind of credential
 * gave to a user.
 */
const classes = files.flatMap(({ text }) =>
  [...text.matchAll(/\bclass (\w+) implements [^{]*\bRevocable\b/g)].map(([, name = '']) => name),
);

/**
 * Lists the calls of `revoke…` on an object of one of `classNames`, as `file: call`. The object is
 * a field, a parameter or a provider that was looked up in Nest.
 */
function callsOfRevoke(of: readonly SourceFile[], classNames: readonly string[]): string[] {
  const names = classNames.join('|');
  return of.flatMap(({ path, text }) => {
    if (path === REVOCATION) return [];
    const held = [...text.matchAll(new RegExp(`(\\w+): (?:${names}|Revocable)\\b`, 'g'))];
    const holders = [...new Set(held.map(([, name]) => name)), `\\((?:${names})[^)]*\\)`];
    const call = new RegExp(`(?:${holders.join('|')})\\??\\.revoke\\w*(?:\\?\\.)?\\(`, 'g');
    return [...text.matchAll(call)].map(([found]) => `${path}: ${found}`);
  });
}

/**
 * Lists the SQL statements that end a user's sessions, certificates or keys outside the folder of
 * the domain that owns the table.
 */
function foreignStatements(of: readonly SourceFile[]): string[] {
  const owners: readonly (readonly [RegExp, string])[] = [
    [/DELETE FROM sessions\s+WHERE user_id/, 'src/domain/sessions/'],
    [/UPDATE ssh_certificates\b[^`]*\brevoked_at = /, 'src/domain/ssh/'],
    [/DELETE FROM authenticators\b/, 'src/domain/keys/authenticators/'],
  ];
  return of
    .filter(({ path, text }) =>
      owners.some(([statement, owner]) => statement.test(text) && !path.startsWith(owner)),
    )
    .map(({ path }) => path);
}

const planted = (text: string): SourceFile => ({
  path: 'src/domain/directory/planted.service.ts',
  text,
  imports: [],
});

describe('access revocation', () => {
  it('is the only caller of what revokes sessions, certificates, keys and application tokens', () => {
    expect(classes.toSorted()).toEqual([
      'ApiTokenRevocation',
      'AttestedKeyRevocation',
      'AuthenticatorsRepository',
      'CertificateRevocation',
      'ClientsRepository',
      'DemotedApiTokens',
      'EndedAccounts',
      'EnrollmentPassesRepository',
      'EventReceiverRevocation',
      'GitHubTokenRevocation',
      'RegisteredResources',
      'SessionsRepository',
      'SignalledEnds',
    ]);
    expect(callsOfRevoke(files, classes)).toEqual([]);
    const field =
      'private readonly rows: SessionsRepository,\n) {} async f() { await this.rows.revoke(';
    expect(callsOfRevoke([planted(field)], classes)).toHaveLength(1);
    const outsiders = 'c: CertificateRevocation) => c.revokeOfOutsiders(tx, domain, cause)';
    expect(callsOfRevoke([planted(outsiders)], classes)).toHaveLength(1);
    const lookedUp = 'app.get(AuthenticatorsRepository).revoke(tx, user)';
    expect(callsOfRevoke([planted(lookedUp)], classes)).toHaveLength(1);
  });

  it('ends every kind outside of Nest, too, where the kinds are put together by hand', () => {
    const composition = files.find(({ path }) =>
      path.endsWith('revocation-kinds/every-revocation.ts'),
    );
    const listed = [...(composition?.text ?? '').matchAll(/\(\) => new (\w+)\(/g)];
    expect(listed.map(([, name]) => name).toSorted()).toEqual(classes.toSorted());
  });

  it('the operator can reach accounts from the command alone', () => {
    const service = [...reachableFrom('src/main.ts')];
    expect(service.filter((path) => /operator-access|break-glass/.test(path))).toEqual([]);
    expect(reachableFrom('src/admin.ts')).toContain(
      'src/domain/admin/operator-access/operator-access.ts',
    );
  });

  it('every kind registers itself in the module of its folder, which production loads', () => {
    const production = reachableFrom('src/main.ts');
    for (const name of classes) {
      const owner = files.find(({ text }) => text.includes(`class ${name} implements`));
      const folder =
        /^src\/domain\/[^/]+\//.exec(owner?.path ?? '')?.[0] ?? 'no folder of the domain';
      const modules = files.filter(
        ({ path }) => path.startsWith(folder) && path.endsWith('.module.ts'),
      );
      expect(
        modules.filter(({ path }) => production.has(path)),
        name,
      ).not.toEqual([]);
      const registration = new RegExp(
        `(\\w+): ${name}\\b[^]*\\.register\\(\\1\\)|\\.register\\(new ${name}\\(`,
      );
      expect(
        modules.some(({ text }) => registration.test(text)),
        name,
      ).toBe(true);
    }
  });

  it('only the owner of a table ends the sessions, certificates or keys of a user', () => {
    expect(foreignStatements(files)).toEqual([]);
    const statement = 'sql(tx)`DELETE FROM sessions WHERE user_id = ${id}`';
    expect(foreignStatements([planted(statement)])).toHaveLength(1);
  });
});
