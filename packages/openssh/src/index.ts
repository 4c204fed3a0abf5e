export { readAuthorityKeys, type ConfiguredKey } from './authority-keys.js';
export { isValidAt, readCertificate, type SshCertificate } from './certificate.js';
export { isHostPattern } from './host-pattern.js';
export {
  encodeKeyRevocationList,
  type KeyRevocationList,
  type RevokedOfAuthority,
} from './key-revocation-list.js';
export {
  isAuthorityKey,
  keyTypeOf,
  publicKeyBlob,
  publicKeyLine,
  readPrivateKey,
  writePrivateKey,
} from './private-key.js';
export {
  parseSshPublicKey,
  sshFingerprint,
  SshKeyRefusal,
  type SshKeyType,
  type SshPublicKey,
} from './public-key.js';
export { joinRuns, NO_RUNS, serialRuns, type SerialRuns } from './serial-sections.js';
export {
  isSignatureOf,
  isSignedByItsAuthority,
  readFileSignature,
  type SshFileSignature,
} from './signature.js';
export {
  signUserCertificate,
  type SigningAuthority,
  type UserCertificate,
} from './user-certificate.js';
export {
  SshFormatError,
  sshMpint,
  SshReader,
  sshString,
  sshStrings,
  uint32,
  uint64,
} from './wire.js';
