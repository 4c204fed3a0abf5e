# The service as an image: the build, the packages it needs, its migrations and its tables. The demo, the tests, the
# tools and the embedded PostgreSQL stay out, so SVC_DATABASE_URL is required. test/architecture/image.test.ts holds it
# to that.

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc nest-cli.json tsconfig.json tsconfig.build.json ./
COPY packages/arguments ./packages/arguments
COPY packages/markup ./packages/markup
COPY packages/openssh ./packages/openssh
COPY packages/scim-language ./packages/scim-language
COPY packages/svc ./packages/svc
COPY packages/webauthn-policy ./packages/webauthn-policy
RUN npm ci
COPY scripts ./scripts
COPY src ./src
COPY docs ./docs
RUN npm run build

FROM node:24-slim
ENV NODE_ENV=production SVC_DATA_DIR=/data
WORKDIR /app
COPY package.json package-lock.json .npmrc LICENSE ./
COPY packages/arguments/package.json ./packages/arguments/
COPY packages/markup/package.json ./packages/markup/
COPY packages/openssh/package.json ./packages/openssh/
COPY packages/scim-language/package.json ./packages/scim-language/
COPY packages/webauthn-policy/package.json ./packages/webauthn-policy/
# Declarations and source maps, half of the packages, are for compilers and debuggers.
RUN npm ci --omit=dev --omit=optional \
  && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete \
  && npm cache clean --force \
  && install -d -m 0700 -o node -g node /data
COPY --from=build /app/dist ./dist
COPY --from=build /app/packages/arguments/dist ./packages/arguments/dist
COPY --from=build /app/packages/markup/dist ./packages/markup/dist
COPY --from=build /app/packages/openssh/dist ./packages/openssh/dist
COPY --from=build /app/packages/scim-language/dist ./packages/scim-language/dist
COPY --from=build /app/packages/webauthn-policy/dist ./packages/webauthn-policy/dist
COPY migrations ./migrations
COPY config ./config
USER node
# Without TLS; with it.
EXPOSE 3000 443 80 8443
HEALTHCHECK --interval=10s --timeout=3s --start-period=40s \
  CMD ["node", "-e", "const { SVC_TLS_CERT: tls, SVC_LISTEN_ADDR: listen } = process.env; const port = tls ? 80 : (listen || ':3000').split(':').at(-1); fetch('http://localhost:' + port + '/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]
