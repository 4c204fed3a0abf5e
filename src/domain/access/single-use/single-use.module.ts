import { Module } from '@nestjs/common';
import { SingleUseStates } from './single-use-states.service.js';

@Module({ providers: [SingleUseStates], exports: [SingleUseStates] })
export class SingleUseModule {}
