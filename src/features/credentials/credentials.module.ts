import { Module } from '@nestjs/common';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { SshCertificatesModule } from '#domain/ssh-certificates/ssh-certificates.module.js';
import { SshController } from './ssh.controller.js';

/**
 * /v1/credentials/ssh: what a hardware-verified session is good for. It decides nothing itself: the session was
 * admitted by the access guard, and the domain checks it again in the statement that records what is issued.
 */
@UnmatchedPaths({ '/v1/credentials/*': { body: { max: 8 * KIB } } })
@Module({ imports: [SshCertificatesModule], controllers: [SshController] })
export class CredentialsModule {}
