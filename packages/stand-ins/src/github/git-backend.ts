import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { StandInState } from './stand-in-state.js';

const PATH = '/usr/local/bin:/usr/bin:/bin';
/** Matches the path of a request of Git: `/owner/repository.git/rest`. */
const REPOSITORY =
  /^\/([\w.-]+)\/([\w.-]+?)(?:\.git)?(\/(?:info\/refs|HEAD|objects\/.*|git-[a-z-]+))$/;

/** Creates an empty bare repository, to which a token with `contents: write` may push. */
export function createRepository(folder: string, owner: string, name: string): void {
  const path = join(folder, owner, `${name}.git`);
  if (existsSync(path)) return;
  mkdirSync(join(folder, owner), { recursive: true });
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', path], { env: { PATH } });
  execFileSync('git', ['-C', path, 'config', 'http.receivepack', 'true'], { env: { PATH } });
}

/**
 * Serves a request if it is one of Git; returns false otherwise. A repository can be read only with
 * a valid token, which the client sends as the password of the user `x-access-token`.
 */
export function serveGit(
  state: StandInState,
  folder: string,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const [, owner = '', name = '', rest = ''] = REPOSITORY.exec(url.pathname) ?? [];
  if (name === '') return false;
  const isPush =
    rest === '/git-receive-pack' || url.searchParams.get('service') === 'git-receive-pack';
  const refusal = refusalOf(state, request, { owner, name, isPush });
  if (refusal !== undefined) {
    const challenge = refusal === 401 ? { 'www-authenticate': 'Basic realm="GitHub"' } : {};
    response.writeHead(refusal, { 'content-type': 'text/plain', ...challenge });
    response.end(`refused: ${refusal}\n`);
    return true;
  }
  run(folder, `/${owner}/${name}.git${rest}`, url, request, response);
  return true;
}

function refusalOf(
  state: StandInState,
  { headers }: IncomingMessage,
  asked: { readonly owner: string; readonly name: string; readonly isPush: boolean },
): number | undefined {
  const [scheme = '', value = ''] = (headers.authorization ?? '').split(' ');
  const [user, password = ''] = Buffer.from(value, 'base64').toString().split(':');
  const token = state.liveToken(password);
  if (scheme.toLowerCase() !== 'basic' || user !== 'x-access-token' || !token) return 401;
  const installation = state.installations.get(token.installationId);
  const allowed = token.repositories ?? installation?.repositories ?? [];
  const isOwn = installation?.account.login === asked.owner && allowed.includes(asked.name);
  if (!isOwn) return 404;
  const level = token.permissions['contents'];
  return level === 'write' || (level === 'read' && !asked.isPush) ? undefined : 403;
}

/**
 * Runs `git http-backend`, the program of Git that serves repositories, as a CGI program (RFC
 * 3875).
 */
function run(
  folder: string,
  path: string,
  { search }: URL,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      PATH_INFO: path,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_USER: 'x-access-token',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => {}); // the program may end before it has read everything
  request.pipe(child.stdin);
  let head = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    if (response.headersSent) {
      response.write(chunk);
      return;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    const lines = head.subarray(0, end).toString().split('\r\n');
    const fields = lines.map((line) => line.split(/:\s*/, 2) as [string, string]);
    const status = fields.find(([name]) => name.toLowerCase() === 'status')?.[1];
    const headers = fields.filter(([name]) => name.toLowerCase() !== 'status');
    response.writeHead(Number.parseInt(status ?? '200', 10), Object.fromEntries(headers));
    response.write(head.subarray(end + 4));
  });
  child.on('close', () => {
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
}
