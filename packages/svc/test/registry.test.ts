import { expect, it } from 'vitest';
import { registryOf } from '../src/docker/registry.js';

const ACCOUNT = '123456789012';

it.each([
  [`${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com`, 'eu-central-1', false],
  [`https://${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/v2/`, 'eu-central-1', false],
  [`${ACCOUNT}.dkr.ecr-fips.us-gov-west-1.amazonaws.com`, 'us-gov-west-1', true],
  [`${ACCOUNT}.dkr.ecr.cn-north-1.amazonaws.com.cn`, 'cn-north-1', false],
  [`${ACCOUNT}.dkr-ecr.eu-central-1.on.aws`, 'eu-central-1', false],
])('%s is a registry in its region', (url, region, isFips) => {
  expect(registryOf(url)).toMatchObject({ account: ACCOUNT, region, isFips });
});

it.each([
  `${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com.evil.example`,
  `${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com.cn`,
  `${ACCOUNT}.dkr.ecr.eu-central-1.example.com`,
  `x${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com`,
  `user@${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com`,
  `http://${ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com`,
  '',
])('%s is none', (url) => {
  expect(registryOf(url)).toBeUndefined();
});
