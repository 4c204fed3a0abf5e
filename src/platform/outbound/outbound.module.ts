import { Module } from '@nestjs/common';
import { OutboundHttp } from './outbound-http.service.js';

/** Fetching what clients name, and nothing that is not theirs to reach. */
@Module({ providers: [OutboundHttp], exports: [OutboundHttp] })
export class OutboundModule {}
