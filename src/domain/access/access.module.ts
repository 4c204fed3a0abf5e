import { Module } from '@nestjs/common';
import { Issuance } from './issuance/issuance.repository.js';

/** The one place that decides what is issued to which user or client. */
@Module({ providers: [Issuance], exports: [Issuance] })
export class IssuanceModule {}
