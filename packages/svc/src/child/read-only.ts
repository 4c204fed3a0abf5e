import { devNull } from 'node:os';
import { READ_ONLY } from '../program/environment.js';
import type { EnvironmentChange } from './child-environment.js';

/** The variables by which the tools of AWS find credentials, or choose other ones. */
export const AWS_CREDENTIALS: readonly string[] = [
  'AWS_PROFILE',
  'AWS_DEFAULT_PROFILE',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_SECURITY_TOKEN',
  'AWS_CREDENTIAL_EXPIRATION',
  'AWS_ROLE_ARN',
  'AWS_ROLE_SESSION_NAME',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_BEARER_TOKEN_BEDROCK',
];

/** The variables by which `gh` and other tools of GitHub find a token. */
export const GITHUB_TOKENS: readonly string[] = [
  'GH_TOKEN',
  'GITHUB_TOKEN',
  'GH_ENTERPRISE_TOKEN',
  'GITHUB_ENTERPRISE_TOKEN',
];

/**
 * The variables that lead to further credentials: keys in an agent, passwords of git, and logins of
 * Docker.
 */
const FURTHER: readonly string[] = [
  'SSH_AUTH_SOCK',
  'SSH_AGENT_PID',
  'GIT_ASKPASS',
  'SSH_ASKPASS',
  'DOCKER_AUTH_CONFIG',
];

/**
 * The change that makes an environment read-only. It sets a mark that each `svc` in the environment
 * obeys, and an empty kubeconfig, and removes variables that lead to credentials.
 *
 * It is no security boundary, because the program runs as the same user and can remove the mark.
 */
export const READ_ONLY_CHANGE: EnvironmentChange = {
  set: { [READ_ONLY]: '1', KUBECONFIG: devNull },
  unset: [...AWS_CREDENTIALS, ...GITHUB_TOKENS, ...FURTHER],
};
