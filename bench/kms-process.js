/**
 * The stand-in for AWS KMS. It has a process of its own, so that the CPU time of its signatures
 * counts neither for the server nor for the clients.
 */
import { startKmsStandIn } from '../test/support/kms-stand-in.ts';

const [roundTrip] = process.argv.slice(2);
const kms = await startKmsStandIn(Number(roundTrip));
process.on('disconnect', () => void kms.close());
process.send({
  endpoint: kms.endpoint,
  ed25519: kms.create('ECC_NIST_EDWARDS25519'),
  rsa: kms.create('RSA_3072'),
});
