import { Module } from '@nestjs/common';
import { OutboundHttp } from './outbound-http.service.js';

/** Provides requests to addresses that clients choose. */
@Module({ providers: [OutboundHttp], exports: [OutboundHttp] })
export class OutboundModule {}
