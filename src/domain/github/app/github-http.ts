import type { z } from 'zod';
import type { Clock } from '#platform/clock/clock.js';
import type { UpstreamAnswer, UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { failureOf } from './github-failure.js';

/** A request to GitHub. Its body is `json` or `form`; without both it has no body. */
export interface GitHubRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  /** The name of the request in errors and logs, without ids and secrets. */
  readonly name: string;
  readonly authorization?: string;
  readonly json?: object;
  readonly form?: Readonly<Record<string, string>>;
}

/** The version of GitHub's REST API that the service uses. */
const API_VERSION = '2022-11-28';

/**
 * Sends a request to GitHub and returns the response.
 *
 * @throws GitHubFailure for a status other than 2xx, or the error of the connection
 */
export async function sendToGitHub(
  http: UpstreamHttp,
  clock: Clock,
  userAgent: string,
  { method = 'GET', url, name, authorization, json, form }: GitHubRequest,
): Promise<UpstreamAnswer> {
  const type = json ? 'application/json' : 'application/x-www-form-urlencoded';
  const body = json ? JSON.stringify(json) : form && new URLSearchParams(form).toString();
  const response = await http.fetch(url, {
    method,
    body: body ?? null,
    headers: {
      accept: form ? 'application/json' : 'application/vnd.github+json',
      'user-agent': userAgent,
      'x-github-api-version': API_VERSION,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined ? {} : { 'content-type': type }),
    },
  });
  if (response.ok) return response;
  throw failureOf(name, response, await response.text(), clock.milliseconds());
}

/**
 * Reads the JSON of a response and checks it against a schema.
 *
 * @throws Error if the JSON does not fit. The error does not quote the response, which may contain
 *   a secret
 */
export async function readAnswer<T>(
  response: UpstreamAnswer,
  schema: z.ZodType<T>,
  name: string,
): Promise<T> {
  let json: unknown;
  try {
    json = await response.json();
  } catch {
    throw new Error(`GitHub's answer to ${name} is no JSON`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.map(({ path }) => path.join('.'));
  throw new Error(`GitHub's answer to ${name} has another shape at ${places.join(', ')}`);
}
