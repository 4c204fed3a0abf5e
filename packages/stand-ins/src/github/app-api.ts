import { verify } from 'node:crypto';
import { systemClock, systemRandom } from '../clock.js';
import {
  BAD_CREDENTIALS,
  NOT_FOUND,
  problem,
  type StandInAnswer,
  type StandInRequest,
} from './http-answer.js';
import type { StandInInstallation, StandInState } from './stand-in-state.js';

/** The longest lifetime of a JWT by which the GitHub App authenticates, in seconds. */
const LONGEST_JWT = 600;

/**
 * Answers the requests that the GitHub App makes with its JWT or its tokens; undefined for any
 * other path.
 */
export function appApi(
  state: StandInState,
  request: StandInRequest,
  path: string,
): StandInAnswer | undefined {
  if (path === '/installation/token' && request.method === 'DELETE') {
    return revokeToken(state, request);
  }
  const [, rest] = /^\/app\/installations(?:\/(.*))?$/.exec(path) ?? [];
  if (!path.startsWith('/app/installations')) return undefined;
  const fault = jwtFault(state, bearerOf(request));
  if (fault !== undefined) return problem(401, fault);
  if (rest === undefined) {
    return { status: 200, json: [...state.installations.values()].map(publicPart) };
  }
  const [id, action] = rest.split('/');
  const installation = state.installations.get(Number(id));
  if (!installation) return NOT_FOUND;
  if (action === undefined && request.method === 'GET') {
    return { status: 200, json: publicPart(installation) };
  }
  if (action === 'access_tokens' && request.method === 'POST') {
    return mint(state, installation, request.body);
  }
  return NOT_FOUND;
}

/** Returns an installation as the API of GitHub shows it, without the names of its repositories. */
export function publicPart(installation: StandInInstallation): object {
  const target = { target_type: installation.account.type, app_slug: 'svc-stand-in' };
  return { ...installation, ...target, repositories: undefined };
}

function mint(state: StandInState, installation: StandInInstallation, body: string): StandInAnswer {
  if (installation.suspended_at !== null) {
    return problem(403, 'This installation has been suspended');
  }
  const asked = JSON.parse(body || '{}') as {
    readonly repositories?: readonly string[];
    readonly permissions?: Readonly<Record<string, string>>;
  };
  const { repositories } = asked;
  if (repositories?.some((name) => !installation.repositories.includes(name))) {
    const detail = 'There is at least one repository that does not exist or is not accessible';
    return problem(422, `${detail} to the parent installation.`);
  }
  const permissions = asked.permissions ?? installation.permissions;
  const isGranted = Object.entries(permissions).every(([name, level]) =>
    [level, 'write'].includes(installation.permissions[name] ?? ''),
  );
  if (!isGranted) {
    return problem(422, 'The permissions requested are not granted to this installation.');
  }
  const token = `ghs_${systemRandom.token(27)}`;
  const expiresAt = systemClock.milliseconds() + state.tokenSeconds * 1000;
  const installationId = installation.id;
  state.tokens.push({
    token,
    installationId,
    permissions,
    repositories,
    expiresAt,
    revoked: false,
  });
  const owner = installation.account.login;
  const named = repositories?.map((name, id) => ({ id, name, full_name: `${owner}/${name}` }));
  return {
    status: 201,
    json: {
      token,
      expires_at: new Date(expiresAt).toISOString().replace(/\.\d+Z$/, 'Z'),
      permissions,
      repository_selection: named ? 'selected' : installation.repository_selection,
      ...(named ? { repositories: named } : {}),
    },
  };
}

function revokeToken(state: StandInState, request: StandInRequest): StandInAnswer {
  const live = state.liveToken(bearerOf(request));
  if (!live) return BAD_CREDENTIALS;
  live.revoked = true;
  return { status: 204 };
}

/**
 * Returns the token of the header `Authorization: Bearer` or `Authorization: token`, both of which
 * GitHub accepts; an empty text without one.
 */
export function bearerOf({ authorization }: StandInRequest): string {
  return /^(?:bearer|token) (.+)$/i.exec(authorization)?.[1] ?? '';
}

/**
 * Verifies the JWT of the GitHub App, as GitHub does. Returns the fault, or undefined for a valid
 * JWT.
 */
function jwtFault(state: StandInState, jwt: string): string | undefined {
  const [header = '', payload = '', signature = ''] = jwt.split('.');
  const decoded = 'A JSON web token could not be decoded';
  try {
    const { alg } = jsonOf(header) as { readonly alg: unknown };
    const data = Buffer.from(`${header}.${payload}`);
    const bytes = Buffer.from(signature, 'base64url');
    if (alg !== 'RS256' || !verify('sha256', data, state.appPublicKey, bytes)) return decoded;
    const { iss, iat, exp } = jsonOf(payload) as Record<string, unknown>;
    const now = systemClock.seconds();
    if (String(iss) !== state.appId) return "'Issuer' claim ('iss') must be an Integer";
    if (typeof iat !== 'number' || iat > now + 60) {
      return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    }
    if (typeof exp !== 'number' || exp <= now) return "'Expiration time' claim ('exp') is past";
    if (exp - now > LONGEST_JWT || exp - iat > LONGEST_JWT) {
      return "'Expiration time' claim ('exp') is too far in the future";
    }
    return undefined;
  } catch {
    return decoded;
  }
}

function jsonOf(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}
