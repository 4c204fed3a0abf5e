/**
 * The server with which our edge (the steps before the router) is compared: Nest and Express with
 * one route, and nothing else.
 */
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

class HelloController {
  hello() {
    return 'ok';
  }
}
const hello = Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello');
Get('hello')(HelloController.prototype, 'hello', hello);
Controller()(HelloController);

class HelloModule {}
Module({ controllers: [HelloController] })(HelloModule);

const app = await NestFactory.create(HelloModule, { logger: false });
await app.listen(0, '127.0.0.1');
const { port } = app.getHttpServer().address();
process.on('disconnect', () => void app.close());
process.send({ baseUrl: `http://127.0.0.1:${port}` });
