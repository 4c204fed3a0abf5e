import { X509Certificate } from 'node:crypto';
import { compareSubjectDn } from '../../../../src/features/oidc/protocol/clients/subject-dn.js';
import { DER } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS } from '../signed-inputs.js';

const LEAF = Buffer.from(INPUTS.clientCertificate.leaf, 'base64');
const REGISTERED = 'CN=client-1,O=Example AB,C=SE';
const GENUINE = 'C=SE\nO=Example AB\nCN=client-1';

export const target: FuzzTarget = {
  parser: 'compareSubjectDn',
  seeds: [LEAF, Buffer.from(INPUTS.clientCertificate.root, 'base64')],
  dictionary: [
    Buffer.from('0603550403', 'hex'),
    Buffer.from('0603550406', 'hex'),
    Buffer.from('060355040a', 'hex'),
    Buffer.from('310b3009', 'hex'),
    'client-1',
    'Example AB',
    'SE',
  ],
  structure: DER,
  longest: 2048,
  run(input) {
    const compared = compareSubjectDn(REGISTERED, input);
    if (compared !== 'match') return false;
    const certificate = attempt(
      () => new X509Certificate(input),
      () => true,
    );
    // The comparison ignores repeated spaces, and spaces at the ends of values. OpenSSL prints
    // every unusual character as an escape, so no other subject becomes equal to the genuine one.
    const subject = certificate?.subject
      ?.replaceAll(/ +/g, ' ')
      .replaceAll(/= | $/gm, (end) => end.trim());
    rule(!certificate || subject === GENUINE, 'OpenSSL reads another subject');
    return true;
  },
};
