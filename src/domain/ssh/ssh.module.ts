import { Module } from '@nestjs/common';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import { CERTIFICATE_ENDING } from './reach-ending.repository.js';
import { AccessModule } from '#domain/access/access.module.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { Signer } from '#platform/crypto/signer.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { CertificateAuthority } from './authority/certificate-authority.service.js';
import { CertificateIssuance } from './certificate-issuance.service.js';
import { CertificateRevocation } from './certificate-revocation.repository.js';
import { AttestedKeyRevocation } from './hardware-keys/attested-keys.repository.js';
import { SshKeyAttestations } from './hardware-keys/ssh-key-attestations.service.js';
import { RevocationList } from './revocation-list/revocation-list.service.js';

/**
 * Returns the signers for the keys of the SSH authority in KMS. The first one signs; the keys of
 * the others are only published.
 */
function signersIn(kms: KmsKeys, { ssh }: Pick<Config, 'ssh'>): Signer[] {
  return ssh.caKmsKeyIds.map((keyId) => kms.signer(keyId, 'Ed25519', 'ES256'));
}

/**
 * Provides the SSH certificate authority with its key, the issued certificates (OpenSSH
 * PROTOCOL.certkeys) and the list of revoked ones (PROTOCOL.krl). It also provides the proofs that
 * SSH keys are inside security keys (PROTOCOL.u2f). The module does NOT decide which user is signed
 * in. It gets a session that a security key verified, and checks that the session has not ended.
 * The authority is opened at start-up, so that the service does not start with a wrong or missing
 * key.
 */
@Module({
  imports: [AccessModule, AccessRevocationModule],
  providers: [
    {
      provide: CertificateAuthority,
      inject: [CONFIG, DataSource, KmsKeys],
      useFactory: (config: Config, dataSource: DataSource, kms: KmsKeys) =>
        CertificateAuthority.open(config, dataSource, signersIn(kms, config)),
    },
    CertificateIssuance,
    RevocationList,
    SshKeyAttestations,
  ],
  exports: [CertificateAuthority, CertificateIssuance, RevocationList, SshKeyAttestations],
})
export class SshModule {
  constructor(revocation: AccessRevocation, endings: AccessEndings) {
    endings.register(CERTIFICATE_ENDING);
    revocation.register(new CertificateRevocation());
    revocation.register(new AttestedKeyRevocation());
  }
}
