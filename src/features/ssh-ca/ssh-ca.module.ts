import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { SshModule } from '#domain/ssh/ssh.module.js';
import { RevocationListController } from './revocation-list.controller.js';
import { SshCaController } from './ssh-ca.controller.js';

/**
 * Serves /v1/credentials/ssh/ca and /v1/credentials/ssh/krl (OpenSSH PROTOCOL.krl). From them an
 * sshd learns which certificate authority to trust, and which certificates are revoked. Both are
 * public and contain no secret. The list names a revoked certificate only by its serial number.
 */
@UnmatchedPaths({ '/v1/credentials/ssh/krl/*': { tier: 'general' } })
@Module({
  imports: [SshModule],
  controllers: [SshCaController, RevocationListController],
})
export class SshCaModule {}
