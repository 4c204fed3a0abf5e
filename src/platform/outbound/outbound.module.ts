import { Module } from '@nestjs/common';
import { OutboundHttp } from './outbound-http.service.js';

/** Provides {@link OutboundHttp}, which sends requests to URLs that clients choose. */
@Module({ providers: [OutboundHttp], exports: [OutboundHttp] })
export class OutboundModule {}
