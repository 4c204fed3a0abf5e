import { generateKeyPairSync } from 'node:crypto';

/**
 * Logs a person in at the identity provider of the bench and enrolls a software key.
 * @returns the token of the session
 */
export async function enroll({ baseUrl, key, person }) {
  const cookies = new Map();
  const send = async (path, body) => {
    const url = new URL(path, baseUrl);
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: {
        origin: baseUrl,
        'x-forwarded-for': `10.0.1.${person + 1}`,
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
      cookies.set(name, value);
    }
    return response;
  };
  let next = `/login?provider=demo&login_hint=person-${person}@bench.example`;
  while (next) {
    const url = new URL(next, baseUrl);
    next = (await send(url)).headers.get('location');
    if (next) next = new URL(next, url).href;
  }
  const { state, publicKey } = await (await send('/enroll/webauthn/start', {})).json();
  const credential = key.create(publicKey, baseUrl);
  const answer = await send('/enroll/webauthn/complete', { state, credential });
  if (answer.status !== 200) throw new Error(await answer.text());
  return cookies.get('svc_session');
}

/**
 * Makes a new Ed25519 key pair, and returns its public key as a line of `authorized_keys` (RFC 8709
 * §4).
 */
export function publicKeyLine() {
  const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const field = (bytes) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const blob = Buffer.concat([
    field(Buffer.from('ssh-ed25519')),
    field(Buffer.from(x, 'base64url')),
  ]);
  return `ssh-ed25519 ${blob.toString('base64')}`;
}
