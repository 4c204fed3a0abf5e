import { Module } from '@nestjs/common';
import { SshCertificatesModule } from '#domain/ssh-certificates/ssh-certificates.module.js';
import { SshCaController } from './ssh-ca.controller.js';

/** /v1/credentials/ssh/ca: what an sshd needs to know of us. Public, and nothing secret is near it. */
@Module({ imports: [SshCertificatesModule], controllers: [SshCaController] })
export class SshCaModule {}
