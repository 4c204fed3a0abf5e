import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import type { GitHubSettings } from './config.js';
import { ENVIRONMENT, type Environment, type Settings } from './environment.js';

const PUBLIC_API = ENVIRONMENT.shape.SVC_GITHUB_API_URL.parse(undefined);

/** The variables of the GitHub App: all of them are set, or none. */
const OF_APP = [
  'SVC_GITHUB_APP_ID',
  'SVC_GITHUB_APP_KEY',
  'SVC_GITHUB_APP_NAME',
  'SVC_GITHUB_APP_CLIENT_ID',
  'SVC_GITHUB_APP_CLIENT_SECRET',
  'SVC_GITHUB_WEBHOOK_SECRET',
] as const;

/** The variables that only an App gives an effect. */
const OF_ADDRESSES = ['SVC_GITHUB_API_URL', 'SVC_GITHUB_WEB_URL'] as const;

/** Returns the settings of the GitHub App; undefined where none is configured. */
export function githubSettings(settings: Settings): GitHubSettings | undefined {
  const { SVC_GITHUB_API_URL: apiUrl, SVC_GITHUB_WEB_URL: webUrl } = settings;
  const [appId, appKey, appName, clientId, clientSecret, webhookSecret] = OF_APP.map(
    (name) => settings[name],
  );
  if (!appId || !appKey || !appName || !clientId || !clientSecret || !webhookSecret) {
    return undefined;
  }
  const ofApi = apiUrl === PUBLIC_API ? 'https://github.com' : new URL(apiUrl).origin;
  const app = { appId, appKey, appName, clientId, clientSecret, webhookSecret };
  return { ...app, apiUrl, webUrl: webUrl ?? ofApi };
}

/** Names each missing variable of a GitHub App that is configured in part, and an address that is not https. */
export function githubProblems(environment: Environment): string[] {
  const webUrl = environment['SVC_GITHUB_WEB_URL'];
  const isPlain = webUrl !== undefined && URL.canParse(webUrl) && !isHttpsOrLoopback(webUrl);
  const problems = isPlain ? ['SVC_GITHUB_WEB_URL: must be https (http only for localhost)'] : [];
  const given = OF_APP.filter((name) => environment[name] !== undefined);
  if (given.length === 0) return problems;
  const missing = OF_APP.filter((name) => environment[name] === undefined);
  return [...problems, ...missing.map((name) => `${name}: is required where ${given[0]} is set`)];
}

/** Warns of the addresses of GitHub where no App is configured. */
export function githubWarnings(environment: Environment): string[] {
  if (OF_APP.some((name) => environment[name] !== undefined)) return [];
  return OF_ADDRESSES.filter((name) => environment[name] !== undefined).map(
    (name) => `${name}: has no effect without SVC_GITHUB_APP_ID`,
  );
}
