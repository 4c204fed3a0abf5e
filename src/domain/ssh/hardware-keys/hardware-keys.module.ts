import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { SingleUseModule } from '#domain/access/single-use/single-use.module.js';
import { AttestedKeyRevocation } from './attested-keys.repository.js';
import { SshKeyAttestations } from './ssh-key-attestations.service.js';

/** The proofs that SSH keys live in security keys (OpenSSH PROTOCOL.u2f). */
@Module({
  imports: [AccessRevocationModule, SingleUseModule],
  providers: [SshKeyAttestations],
  exports: [SshKeyAttestations],
})
export class HardwareKeysModule {
  constructor(revocation: AccessRevocation) {
    const keys: AttestedKeyRevocation = new AttestedKeyRevocation();
    revocation.register(keys);
  }
}
