# The images of docker-compose.yml: `server`, and `fileserver`, the demonstration of quota-client.

FROM rust:1.95-slim-bookworm AS skeleton
# What cargo needs to build the dependencies, which no edit of the sources changes: the manifests, and empty programs.
WORKDIR /build
COPY . .
RUN find . -type f ! -name '*.rs' ! -name 'Cargo.*' -delete \
    && find . -name '*.rs' | while read -r source; do echo 'fn main() {}' >"$source"; done


FROM rust:1.95-slim-bookworm AS build
# Cargo's profile: `dev` is built faster, to try the images.
ARG PROFILE=release
ENV CARGO_INCREMENTAL=0
ENV CARGO_BUILD="cargo build --locked -p quota-server --bin quota-server -p quota-client --example git_fileserver"
WORKDIR /build
COPY --from=skeleton /build .
RUN $CARGO_BUILD --profile $PROFILE
COPY . .
# Touched, or cargo would take the empty programs for them, which are newer.
RUN find . -path ./target -prune -o -name '*.rs' -exec touch {} + \
    && $CARGO_BUILD --profile $PROFILE \
    && install --strip -D -t /programs target/*/quota-server target/*/examples/git_fileserver


FROM debian:bookworm-slim AS server
# rediss:// is checked against the system's certificates.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY deploy/answers /usr/local/bin/
COPY --from=build /programs/quota-server /usr/local/bin/
USER 10001:10001
EXPOSE 8080 8081
HEALTHCHECK --interval=2s --timeout=2s --start-period=10s --retries=3 CMD ["answers", "200", "8080", "/readyz"]
ENTRYPOINT ["quota-server"]


FROM debian:bookworm-slim AS fileserver
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o 10001 -g 10001 /srv/git
COPY deploy/answers deploy/fileserver /usr/local/bin/
COPY quota-client/examples/git_fileserver/settings.toml /etc/quota/fileserver.toml
COPY --from=build /programs/git_fileserver /usr/local/bin/
USER 10001:10001
EXPOSE 8000
# It says who it is to those who do not say who they are, and asks no quota server for that.
HEALTHCHECK --interval=2s --timeout=2s --start-period=10s --retries=3 \
    CMD ["answers", "401", "8000", "/project.git/info/refs?service=git-upload-pack"]
ENTRYPOINT ["fileserver"]
