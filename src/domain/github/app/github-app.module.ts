import { Module } from '@nestjs/common';
import { GitHubApp } from './github-app.service.js';

@Module({ providers: [GitHubApp], exports: [GitHubApp] })
export class GitHubAppModule {}
