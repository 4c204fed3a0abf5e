import { Module } from '@nestjs/common';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { SshModule } from '#domain/ssh/ssh.module.js';
import { AwsModule } from '#domain/aws/aws.module.js';
import { AwsController } from './aws.controller.js';
import { SshController } from './ssh.controller.js';

/**
 * Serves `/v1/credentials`, which issues credentials to a session that a security key verified. The
 * module decides nothing itself. The access guard admits the session, and the domain layer checks
 * the session again in the SQL statement that records a credential.
 */
@UnmatchedPaths({ '/v1/credentials/*': { body: { max: 8 * KIB } } })
@Module({
  imports: [SshModule, AwsModule],
  controllers: [SshController, AwsController],
})
export class CredentialsModule {}
