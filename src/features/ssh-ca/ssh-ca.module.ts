import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { SshModule } from '#domain/ssh/ssh.module.js';
import { RevocationListController } from './revocation-list.controller.js';
import { SshCaController } from './ssh-ca.controller.js';

/**
 * /v1/credentials/ssh/ca and /v1/credentials/ssh/krl (OpenSSH PROTOCOL.krl): what an sshd needs to
 * know of us. Public, and nothing secret is near it: of a revoked certificate only the serial is
 * told.
 */
@UnmatchedPaths({ '/v1/credentials/ssh/krl/*': { tier: 'general' } })
@Module({
  imports: [SshModule],
  controllers: [SshCaController, RevocationListController],
})
export class SshCaModule {}
