/**
 * This file alone imports `@nestjs/schedule`. The service uses its registry of timers, which ends them when the application
 * stops. The interval is configured, so that no decorator of the library fits.
 */
export { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
