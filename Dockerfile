# The service as an image: the build, the packages it needs, its migrations and its tables. The demo, the tests, the
# tools and the embedded PostgreSQL stay out, so SVC_DATABASE_URL is required. test/architecture/image.test.ts holds it
# to that, and test/guides/image.test.ts builds it, starts it and uses it. docs/operations/image.md is about its use.

# Node's official image with the version of package.json, by the digest of its index of all platforms. Another base needs
# Node 24 and glibc at run time, and npm for the build: --build-arg NODE_IMAGE=…
ARG NODE_IMAGE=docker.io/library/node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

# What is built is JavaScript alone, so one build on the builder's own platform serves every platform of the image:
# --platform linux/amd64,linux/arm64. BUILDPLATFORM is set by the builder: BuildKit, or Buildah 1.28 and newer.
FROM --platform=$BUILDPLATFORM $NODE_IMAGE AS build
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

FROM --platform=$BUILDPLATFORM $NODE_IMAGE AS app
WORKDIR /app
COPY package.json package-lock.json .npmrc LICENSE ./
COPY packages/arguments/package.json ./packages/arguments/
COPY packages/markup/package.json ./packages/markup/
COPY packages/openssh/package.json ./packages/openssh/
COPY packages/scim-language/package.json ./packages/scim-language/
COPY packages/webauthn-policy/package.json ./packages/webauthn-policy/
# Declarations and source maps, half of the packages, are for compilers and debuggers.
RUN npm ci --omit=dev --omit=optional \
  && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
COPY --from=build /app/dist ./dist
COPY --from=build /app/packages/arguments/dist ./packages/arguments/dist
COPY --from=build /app/packages/markup/dist ./packages/markup/dist
COPY --from=build /app/packages/openssh/dist ./packages/openssh/dist
COPY --from=build /app/packages/scim-language/dist ./packages/scim-language/dist
COPY --from=build /app/packages/webauthn-policy/dist ./packages/webauthn-policy/dist
COPY migrations ./migrations
COPY config ./config
# No package is compiled for one platform. Every user can read /app and none can write to it, whatever the modes of the
# checkout are.
RUN find . -name '*.node' -type f | (! grep .) && chmod -R a=rX . \
  && install -d -m 0700 /writable/data

# The image runs no command of its own platform while it is built, and needs no shell.
FROM $NODE_IMAGE
ARG NODE_IMAGE
ARG VERSION=
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="svc-server" \
      org.opencontainers.image.description="Hardware-key authentication service: no credential without an attested FIDO2 security key." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$NODE_IMAGE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
# A young generation of 72 MiB at most: docs/performance/start-and-memory.md.
ENV NODE_ENV=production SVC_DATA_DIR=/data NODE_OPTIONS=--max-semi-space-size=24
WORKDIR /app
COPY --from=app --chown=0:0 /app /app
# With the folder above it, because a copied folder loses its own mode.
COPY --from=app --chown=1000:1000 /writable/ /
# The user `node` of the base, by number: Kubernetes cannot tell from a name that it is not root.
USER 1000:1000
# Without TLS; with it.
EXPOSE 3000 443 80 8443
# Perl is in each Debian, and needs a third of the CPU time of Node. Kubernetes ignores this, and asks by itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=40s \
  CMD ["perl", "-MIO::Socket::IP", "-e", "my $port = $ENV{SVC_TLS_CERT} ? 80 : ($ENV{SVC_LISTEN_ADDR} || ':3000') =~ s/.*://r; for my $host ('127.0.0.1', '::1') { my $server = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Timeout => 1) or next; print $server qq(GET /health HTTP/1.0\\r\\nHost: localhost:$port\\r\\n\\r\\n); exit 0 if (<$server> // '') =~ m{^HTTP/1\\.[01] 200 } } exit 1"]
# The entrypoint of the base is a script of sh.
ENTRYPOINT []
CMD ["node", "dist/main.js"]
