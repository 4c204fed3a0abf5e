// Records every kind of response of our server in the folder TEST_TRAFFIC: method, route, status,
// media type and error code. vitest loads this file in every worker, and the tests load it in every
// server process by --import.
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { threadId } from 'node:worker_threads';

const folder = process.env['TEST_TRAFFIC'];
const STARTED = Symbol.for('recorder of traffic');

if (folder !== undefined && globalThis[STARTED] === undefined) {
  globalThis[STARTED] = true;
  const file = `${folder}/${process.pid}-${threadId}.ndjson`;
  const seen = new Set();
  subscribe('http.server.response.finish', ({ request, response }) => {
    // Only our server sets this header. The responses of stand-ins lack it and must not be
    // recorded.
    if (!response.hasHeader('x-ratelimit-limit') || request.method === 'OPTIONS') return;
    if (isElsewhere(request, response)) return;
    const line = JSON.stringify(factsOf(request, response));
    if (seen.has(line)) return;
    seen.add(line);
    try {
      appendFileSync(file, `${line}\n`);
    } catch {
      // The run has ended, and its folder was removed.
    }
  });
}

/**
 * Returns true for a response of an organization's own host, or of the listener that redirects
 * plain HTTP to https. The document describes only the service's own origin, so these are not
 * recorded.
 */
function isElsewhere(request, response) {
  const host = /^https?:\/\/([^/?]*)/i.exec(request.url)?.[1] ?? request.headers.host ?? '';
  return response.statusCode === 308 || /\.localhost(?::\d*)?$/i.test(host);
}

function factsOf(request, response) {
  const template = request.route?.path;
  const isRouted = template !== undefined && template !== '/{*path}';
  const type = String(response.getHeader('content-type') ?? '');
  const key = Object.getOwnPropertySymbols(response).find(
    ({ description }) => description === 'code of the error',
  );
  const target = (request.originalUrl ?? request.url ?? '').replace(/^https?:\/\/[^/?]*/i, '');
  return {
    method: request.method === 'HEAD' ? 'GET' : request.method,
    head: request.method === 'HEAD',
    template: isRouted ? template : null,
    path: isRouted ? null : target.replace(/[?#].*$/s, '').slice(0, 200),
    status: response.statusCode,
    type: type.split(';')[0].trim().toLowerCase(),
    code: key === undefined ? null : response[key],
  };
}
