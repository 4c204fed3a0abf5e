import { Module, type DynamicModule, type ValueProvider } from '@nestjs/common';
import { ConfigModule as NestConfigModule, registerAs } from '@nestjs/config';
import { CONFIG, type Config } from './config.js';

/**
 * Provides the values that are fixed before the application is built. They are the operator's
 * frozen {@link Config}, and the values of the composition root, which no variable can change. This
 * file alone imports `@nestjs/config`, and only registers the configuration by it. `load-config.ts`
 * reads and validates the configuration.
 */
@Module({})
export class ConfigModule {
  static forRoot(config: Config, composition: readonly ValueProvider[]): DynamicModule {
    const settings = registerAs('svc', () => config);
    return {
      module: ConfigModule,
      global: true,
      imports: [NestConfigModule.forRoot({ ignoreEnvFile: true, load: [settings] })],
      providers: [{ provide: CONFIG, useExisting: settings.KEY }, ...composition],
      exports: [CONFIG, ...composition.map(({ provide }) => provide)],
    };
  }
}
