import { Module, type DynamicModule, type ValueProvider } from '@nestjs/common';
import { ConfigModule as NestConfigModule, registerAs } from '@nestjs/config';
import { CONFIG, type Config } from './config.js';

/**
 * What is settled before the application is built: the frozen {@link Config} that the operator decided, and what the
 * composition root alone decides and no variable can change.
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
