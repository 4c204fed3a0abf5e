import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGitHubApplication, type GitHubApplication } from '../support/github.js';
import { startDocumentKeyGround, type DocumentKeyGround } from '../support/issuers.js';
import { requires, SCHEMATHESIS } from '../support/programs.js';
import { atScale } from '../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

/** The checks of every response: it is no 5xx, and everything in it is in the OpenAPI document. */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

/**
 * The groups of operations: the title of each and the pattern of its paths. Each group is one run.
 */
const GROUPS = [
  ['the routes of users', '^/(api/(?!v1/org)|v1/)'],
  ['the routes of admins', '^/api/v1/org'],
  ['SCIM', '^/scim/'],
  ['OAuth and metadata', '^/(oauth|[.]well-known)'],
] as const;

/** The largest number of generated test cases for each operation. */
const EXAMPLES = atScale({ small: 3, full: 100 });

/**
 * The number of Python threads. With two, Python 3.11 may end with "AST constructor recursion depth
 * mismatch", because its parser counts the depth of all threads together.
 */
const WORKERS = '1';

/** The time limit in milliseconds for one group at full scale, on a slow machine. */
const LONGEST = 600_000;

const LEAST_REQUESTS = atScale({ small: 350, full: 10_000 });

/**
 * The Python file that adds credentials to the requests. Python must not write a compiled copy
 * beside it.
 */
const HOOKS = fileURLToPath(new URL('../support/schemathesis/hooks.py', import.meta.url));

requires('schemathesis', 'moto').describe(
  'schemathesis, which writes requests from the document',
  () => {
    let kms: DocumentKeyGround;
    let application: GitHubApplication;
    let folder: string;
    let requests = 0;
    const count = () => (requests += 1);

    beforeAll(async () => {
      kms = await startDocumentKeyGround();
      application = await startGitHubApplication({ environment: kms.environment });
      folder = await makeTemporaryDirectory();
      // The touch is one hour in the future. Otherwise it would become too old before the run is
      // over.
      await application.app.dataSource.query(
        "UPDATE sessions SET auth_time = now() + interval '1 hour'",
      );
      subscribe('http.server.response.finish', count);
    });

    afterAll(async () => {
      unsubscribe('http.server.response.finish', count);
      await application.close();
      await kms.close();
      await removeDirectory(folder);
    });

    /** Runs schemathesis on the operations whose paths match a pattern. */
    async function run(paths: string): Promise<{ status: number; output: string }> {
      const { app, organization } = application;
      const args = [
        ['run', `${app.baseUrl}/openapi.json`],
        ['--include-path-regex', paths, '--checks', CHECKS.join(',')],
        ['--phases', 'fuzzing', '--max-examples', String(EXAMPLES)],
        ['--workers', WORKERS, '--seed', '14', '--no-shrink', '--generation-database', 'none'],
        ['--suppress-health-check', 'all', '--warnings', 'off', '--no-color'],
      ].flat();
      const child = spawn(SCHEMATHESIS, args, {
        cwd: folder,
        env: {
          PATH: process.env['PATH'],
          HOME: folder,
          SCHEMATHESIS_HOOKS: HOOKS,
          PYTHONDONTWRITEBYTECODE: '1',
          TEST_SESSION: organization.admin.client.cookie('svc_session'),
          TEST_SCIM_TOKEN: organization.token,
        },
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => (output += text));
      }
      const [status] = (await once(child, 'close')) as [number];
      return { status, output };
    }

    it.each(GROUPS)(
      'finds no 5xx and nothing undocumented in %s',
      { timeout: LONGEST },
      async (_, paths) => {
        const { status, output } = await run(paths);
        expect(status, output.slice(-20_000)).toBe(0);
      },
    );

    it(`sends at least ${LEAST_REQUESTS} requests`, () => {
      process.stdout.write(`schemathesis sent ${requests} requests\n`);
      expect(requests).toBeGreaterThanOrEqual(LEAST_REQUESTS);
    });
  },
);
