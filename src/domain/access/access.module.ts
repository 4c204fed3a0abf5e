import { Module } from '@nestjs/common';
import { Issuance } from './issuance/issuance.repository.js';
import { SingleUseStates } from './single-use/single-use-states.service.js';

@Module({ providers: [Issuance, SingleUseStates], exports: [Issuance, SingleUseStates] })
export class AccessModule {}
