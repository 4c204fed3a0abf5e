import { now, sleep } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { accepted, codeOf, documentOf } from '../server/server-client.js';
import type { StoredToken } from '../server/stored-token.js';
import { Unreachable, type PlainAnswer } from '../server/transport.js';
import { printable } from '../terminal/table.js';
import { CLIENT_ID, DEVICE_SCOPE, storeToken, type LoginParts } from './new-token.js';

/** The answer of the device authorization endpoint (RFC 8628 §3.2). */
interface DeviceCodes {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly expires_in: number;
  readonly interval?: number;
}

/** Logs in with a code that the user types in a browser of another machine (RFC 8628). */
export async function loginByDevice(parts: LoginParts): Promise<StoredToken> {
  const { client, terminal } = parts;
  const asked = await client.form('/oauth/device', { client_id: CLIENT_ID, scope: DEVICE_SCOPE });
  const codes = documentOf(accepted(asked)) as DeviceCodes;
  terminal.warn(`Open ${printable(codes.verification_uri)} in a browser and type this code:`);
  terminal.warn(`  ${printable(codes.user_code)}`);
  terminal.warn(
    'Type it only because you ran this command yourself, just now. A code that another',
  );
  terminal.warn('person sent you is an attack: it gives that person your access.');
  return storeToken(parts, await poll(parts, codes));
}

/**
 * Asks for the token. Returns undefined if the server cannot be reached or fails, because the
 * caller then asks again, more slowly (RFC 8628 §3.5).
 */
async function tokenAnswer(
  client: LoginParts['client'],
  deviceCode: string,
): Promise<PlainAnswer | undefined> {
  try {
    const answer = await client.form('/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      client_id: CLIENT_ID,
      device_code: deviceCode,
    });
    return answer.status >= 500 ? undefined : answer;
  } catch (error) {
    if (error instanceof Unreachable) return undefined;
    throw error;
  }
}

async function poll({ client }: LoginParts, codes: DeviceCodes): Promise<PlainAnswer> {
  const deadline = now() + codes.expires_in * 1000;
  let interval = codes.interval ?? 5;
  while (now() < deadline) {
    await sleep(interval * 1000);
    const answer = await tokenAnswer(client, codes.device_code);
    if (!answer) {
      interval += 5;
      continue;
    }
    const code = answer.status === 200 ? undefined : codeOf(answer);
    if (code === 'slow_down') interval += 5;
    else if (code === 'access_denied') {
      throw new CliFailure(
        'The login was refused in the browser.',
        'Run svc login again.',
        STATUS.refused,
      );
    } else if (code === 'expired_token') break;
    else if (code !== 'authorization_pending') return answer;
  }
  throw new CliFailure('The code has expired.', 'Run svc login --device again.', STATUS.failed);
}
