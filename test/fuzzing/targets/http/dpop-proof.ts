import { checkDpopProof } from '#domain/sessions/dpop/dpop-proof.js';
import { JWS } from '../../engine/structures.js';
import { rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS, NOW } from '../signed-inputs.js';

const { proof, jkt } = INPUTS.dpop;
const REQUEST = {
  method: 'POST',
  addresses: ['https://svc.example.com/v1/me'],
  token: 'token',
  jkt,
  now: NOW.getTime() / 1000,
};
/** The header and the payload of the genuine proof, which are the signed part. */
const SIGNED = proof.split('.').slice(0, 2).join('.');

export const target: FuzzTarget = {
  parser: 'checkDpopProof',
  seeds: [Buffer.from(proof)],
  dictionary: [
    '"alg":"none"',
    '"alg":"HS256"',
    '"alg":"EdDSA"',
    '"alg":"PS256"',
    '"typ":"JWT"',
    '"crit":["b64"]',
    '"b64":false',
    '"jwk":',
    '"d":"',
    '"kty":"RSA"',
    '"kty":"oct"',
    '"kty":"OKP"',
    '"n":"AQAB"',
    '"e":"AQAB"',
    '"crv":"P-384"',
    '"crv":"Ed25519"',
    '"htm":"GET"',
    '"htu":"',
    '"iat":1e999',
    '"jti":1',
    '"exp":1',
    '"nbf":9999999999',
    '{',
    '}',
    ',',
    ':',
    '.',
    '=',
    '-',
    '_',
  ],
  structure: JWS,
  longest: 4096,
  async run(input) {
    const text = input.toString('latin1');
    const checked = await checkDpopProof(text, REQUEST);
    const isAccepted = typeof checked !== 'string';
    rule(!isAccepted || text.startsWith(`${SIGNED}.`), 'a proof that the key did not sign');
    return isAccepted;
  },
};
