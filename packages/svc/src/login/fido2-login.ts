import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { PrivateFolder } from '../files/private-folder.js';
import { CliFailure, STATUS, errorCode } from '../program/failure.js';
import { accepted, codeOf, detailOf } from '../server/server-client.js';
import type { StoredToken } from '../server/stored-token.js';
import { loginByCode } from './code-login.js';
import { CLIENT_ID, scopeOf, storeToken, type LoginParts } from './new-token.js';

/** The answer of `/oauth/fido2/challenge`. */
interface Fido2Challenge {
  readonly state: string;
  readonly publicKey: { readonly challenge: string; readonly rpId: string };
}

/**
 * The file with the id of the security key's credential from the last login. The id is no secret.
 */
const CREDENTIAL = 'fido2-credential.json';

/** Logs in with the security key itself, without a browser. It runs the programs of libfido2. */
export async function loginByFido2(parts: LoginParts): Promise<StoredToken> {
  const { client, dpopKey, kind, server, folder, terminal } = parts;
  const device = await findDevice();
  const asked = await client.form('/oauth/fido2/challenge', {
    client_id: CLIENT_ID,
    dpop_jkt: await dpopKey.thumbprint(),
  });
  const { state, publicKey } = JSON.parse(accepted(asked).text) as Fido2Challenge;
  const { challenge, rpId } = publicKey;
  assertOwnName(rpId, server);
  const own = await credentialOf(folder, rpId, device);
  terminal.warn('Type the PIN of your security key, then touch it.');
  const clientData = Buffer.from(
    JSON.stringify({
      type: 'webauthn.get',
      challenge,
      origin: `svc-native:${CLIENT_ID}`,
      crossOrigin: false,
    }),
  );
  const { authenticatorData, signature } = await assertion(device, rpId, own.id, clientData);
  const credential = {
    id: own.id.toString('base64url'),
    rawId: own.id.toString('base64url'),
    type: 'public-key',
    response: {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: authenticatorData.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle: own.userHandle.toString('base64url'),
    },
  };
  const answer = await client.form('/oauth/token', {
    grant_type: 'urn:svc:params:oauth:grant-type:fido2',
    client_id: CLIENT_ID,
    scope: scopeOf(kind),
    state,
    assertion: Buffer.from(JSON.stringify(credential)).toString('base64url'),
  });
  if (codeOf(answer) === 'interaction_required') {
    terminal.warn(detailOf(answer) ?? 'The server asks you to sign in first.');
    return loginByCode(parts);
  }
  // The key may have been removed or replaced, so the next login must not ask for this credential.
  if (answer.status >= 400) folder.remove(CREDENTIAL);
  const stored = await storeToken(parts, answer);
  const { userHandle } = credential.response;
  folder.writeJson(CREDENTIAL, { rp_id: rpId, id: credential.id, user_handle: userHandle });
  return stored;
}

/**
 * Checks that the relying party id, which the key signs, is the host name of the server or a parent
 * domain of it. Otherwise a malicious server could pass on the challenge of another server and use
 * the answer there.
 *
 * @throws CliFailure for another name
 */
function assertOwnName(rpId: unknown, server: string): void {
  const { hostname } = new URL(server);
  const isOwn =
    typeof rpId === 'string' &&
    (rpId === hostname || (rpId.includes('.') && hostname.endsWith(`.${rpId}`)));
  if (isOwn) return;
  const message = `The server asks for a key of another name than its own, ${hostname}.`;
  throw new CliFailure(message, 'Check the URL of the server: svc status', STATUS.refused);
}

/**
 * Finds the only security key that is plugged in.
 * @throws CliFailure if there is none, or if there are several
 */
async function findDevice(): Promise<string> {
  const listed = await run('fido2-token', ['-L']);
  const devices = [...listed.matchAll(/^(.+?): vendor=/gm)].map(([, path]) => path ?? '');
  const [device] = devices;
  if (device === undefined) {
    throw new CliFailure('No security key is plugged in.', 'Plug one in, then try again.');
  }
  if (devices.length > 1) {
    throw new CliFailure(
      'Several security keys are plugged in.',
      'Leave only one, then try again.',
    );
  }
  return device;
}

/**
 * A credential of a security key: its id, and its user handle, by which the server finds the user.
 */
interface Credential {
  readonly id: Buffer;
  readonly userHandle: Buffer;
}

/** The content of the file with the credential of the last login. Bytes are in base64url. */
interface StoredCredential {
  readonly rp_id?: unknown;
  readonly id?: unknown;
  readonly user_handle?: unknown;
}

const bytes = (text: string) => Buffer.from(text, 'base64url');

/**
 * Returns the credential for the server: that of the last login, or else the only one that the key
 * lists.
 */
async function credentialOf(
  folder: PrivateFolder,
  rpId: string,
  device: string,
): Promise<Credential> {
  const known: StoredCredential | undefined = folder.readJson(CREDENTIAL);
  const { id, user_handle: userHandle } = known ?? {};
  if (known?.rp_id === rpId && typeof id === 'string' && typeof userHandle === 'string') {
    return { id: bytes(id), userHandle: bytes(userHandle) };
  }
  const listed = await run('fido2-token', ['-L', '-k', rpId, device]);
  // The columns of a line of `fido2-token -L -k`: number, id, display name (which may have spaces),
  // user handle, type, protection.
  const rows = [...listed.matchAll(/^\d+: (\S+) .*?(\S+) \S+ \S+$/gm)];
  const [row] = rows;
  if (row && rows.length === 1) {
    const [, listedId = '', handle = ''] = row;
    return { id: Buffer.from(listedId, 'base64'), userHandle: Buffer.from(handle, 'base64') };
  }
  const message = row
    ? 'This security key holds several credentials for the server.'
    : 'This security key holds no credential that it can list for the server.';
  throw new CliFailure(message, 'Log in with the browser: svc login', STATUS.failed);
}

/**
 * Gets the signature of the security key for a login. The key verifies its user by PIN or
 * fingerprint.
 */
async function assertion(device: string, rpId: string, credentialId: Buffer, clientData: Buffer) {
  const hash = createHash('sha256').update(clientData).digest('base64');
  const input = `${hash}\n${rpId}\n${credentialId.toString('base64')}\n`;
  const lines = (await run('fido2-assert', ['-G', '-v', device], input)).split('\n');
  const [data = '', signature = ''] = lines.slice(2);
  return {
    authenticatorData: unwrapped(Buffer.from(data, 'base64')),
    signature: Buffer.from(signature, 'base64'),
  };
}

/**
 * Returns the content of the CBOR byte string that libfido2 prints (RFC 8949 §3.1). Bytes that are
 * no such string are returned as they are.
 */
function unwrapped(data: Buffer): Buffer {
  if (data[0] === 0x58 && data[1] === data.length - 2) return data.subarray(2);
  if (data[0] === 0x59 && data.readUInt16BE(1) === data.length - 3) return data.subarray(3);
  return data;
}

/**
 * Runs a program of libfido2, which asks for the PIN on the terminal.
 * @throws CliFailure if the program is missing or fails
 */
function run(program: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    child.stdin.on('error', () => {});
    child.once('error', (cause) => reject(programFailure(program, cause)));
    child.once('close', (status) => {
      if (status === 0) resolve(output);
      else
        reject(new CliFailure(`${program} failed.`, 'Check the PIN and the key, then try again.'));
    });
    child.stdin.end(input);
  });
}

function programFailure(program: string, cause: unknown): CliFailure {
  const isMissing = errorCode(cause) === 'ENOENT';
  const message = isMissing ? `${program} is not installed.` : `${program} cannot run.`;
  const whatToDo =
    'Install libfido2 (Debian: fido2-tools, macOS: brew install libfido2), or use: svc login';
  return new CliFailure(message, whatToDo, STATUS.failed, { cause });
}
