import { CliFailure, STATUS } from '../program/failure.js';
import { printable } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { send, type PlainAnswer } from './transport.js';

/** The longest wait for the metadata of a server, in milliseconds. */
const TIMEOUT = 10_000;

/** The metadata of an authorization server (RFC 8414 §2), as far as it is read. */
interface Metadata {
  readonly issuer?: unknown;
  readonly grant_types_supported?: unknown;
}

/** A grant type that no other product has. A server that supports it is a server of svc. */
const OWN_GRANT = 'urn:svc:params:oauth:grant-type:fido2';

/**
 * Reads the metadata of a server (RFC 8414), and checks that a server of svc answers at the URL. So
 * a wrong URL is noticed before a browser opens.
 *
 * @param server the origin of the server
 * @returns the answer, whose header `Date` tells the clock of the server
 * @throws CliFailure in words that say what answers at that URL
 */
export async function readDiscovery(server: string, terminal: Terminal): Promise<PlainAnswer> {
  const url = `${server}/.well-known/oauth-authorization-server`;
  const headers = { accept: 'application/json' };
  const answer = await send(async () => ({ method: 'GET', url, headers }), terminal, TIMEOUT);
  const { status, text } = answer;
  if (status >= 300 && status < 400) {
    throw redirected(server, answer.headers.get('location'), url);
  }
  const { issuer, grant_types_supported: grants } = metadataIn(text);
  if (status === 200 && typeof issuer === 'string') {
    if (issuer !== server) throw otherName(server, issuer);
    if (Array.isArray(grants) && grants.includes(OWN_GRANT)) return answer;
    throw noServer(server, 'it is another kind of login server');
  }
  if (status === 421) {
    const whatToDo = 'Ask an admin for the URL of the server.';
    throw new CliFailure(`A server of svc answers at ${server}, under another name.`, whatToDo);
  }
  if (status >= 500) {
    const message = `${server} has a fault now (status ${status}).`;
    throw new CliFailure(message, 'Try again in a minute, or tell an admin.');
  }
  throw noServer(server, status === 200 ? 'it shows a page' : `it answers with status ${status}`);
}

function metadataIn(text: string): Metadata {
  try {
    return Object(JSON.parse(text)) as Metadata;
  } catch {
    return {};
  }
}

function redirected(server: string, location: string | null, url: string): CliFailure {
  const target = URL.canParse(location ?? '', url) ? new URL(location ?? '', url) : undefined;
  if (!target || target.origin === server) return noServer(server, 'it leads to another page');
  const origin = printable(target.origin);
  return new CliFailure(`${server} leads to ${origin}.`, ifRight(origin), STATUS.failed);
}

function otherName(server: string, issuer: string): CliFailure {
  const name = printable(issuer);
  return new CliFailure(`The server at ${server} has the URL ${name}.`, ifRight(name));
}

function ifRight(address: string): string {
  return `If that is your server, run: svc use ${address}`;
}

function noServer(server: string, why: string): CliFailure {
  const whatToDo = 'Check the URL. An admin of your organization knows it.';
  return new CliFailure(`${server} is no server of svc: ${why}.`, whatToDo);
}
