# The image of Claude Ops: the server, git, Node and the Claude CLI, for users without rights: claudeops, and claudeops-agent-1 to -16 for what
# agents run, one for each session. docs/guides/deployment.md says how to run it; internal/testkit/deploytest and e2e hold this file against the code.
#
# The base images are arguments so that you can add the digest that your registry shows:
#   docker build --build-arg NODE_IMAGE=docker.io/library/node:22.23.3-bookworm-slim@sha256:... .
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm
ARG NODE_IMAGE=docker.io/library/node:22.23.3-bookworm-slim

FROM ${GO_IMAGE} AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS=-trimpath GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -buildvcs=false -ldflags='-s -w' -o /out/claudeops ./cmd/claudeops \
    && go build -buildvcs=false -ldflags='-s -w' -o /out/claudeops-connect ./cmd/claudeops-connect

FROM ${NODE_IMAGE} AS cli
WORKDIR /opt/claude
COPY deploy/claude/package.json deploy/claude/package-lock.json ./
# The program is an optional dependency for each platform; the package's install script would only copy it.
RUN npm ci --ignore-scripts --no-audit --no-fund && install -m 0755 node_modules/@anthropic-ai/claude-code-linux-*/claude claude

FROM ${NODE_IMAGE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends bind9-dnsutils ca-certificates curl git openssh-client openssl \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 claudeops \
    && useradd --uid 10001 --gid 10001 --create-home --shell /usr/sbin/nologin claudeops \
    && groupadd --gid 10002 claudeops-agent \
    && for n in $(seq 16); do \
         groupadd --gid $((10010 + n)) claudeops-agent-$n \
         && useradd --uid $((10010 + n)) --gid $((10010 + n)) --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin claudeops-agent-$n || exit; \
       done \
    && install -d -m 0700 -o 10001 -g 10001 /state /git \
    && install -d -m 0700 /run/claudeops-agents \
    && install -d /repos
COPY --from=build /out/claudeops /app/claudeops
COPY --from=build /out/claudeops-connect /app/claudeops-connect
COPY --from=cli /opt/claude/claude /usr/local/bin/claude
COPY prompts /app/prompts
COPY .claude /app/.claude
ENV HOME=/home/claudeops \
    CLAUDEOPS_ADDR=0.0.0.0:8080 \
    CLAUDEOPS_AGENT_USER=claudeops-agent+16 \
    CLAUDEOPS_CLAUDE_BIN=/usr/local/bin/claude \
    CLAUDEOPS_PROMPTS_DIR=/app/prompts \
    CLAUDEOPS_REPOS_DIR=/repos \
    CLAUDEOPS_RUN_AS=claudeops \
    CLAUDEOPS_STATE_DIR=/state \
    DISABLE_AUTOUPDATER=1
WORKDIR /app
# Root becomes claudeops before anything else is done (CLAUDEOPS_RUN_AS), and keeps what it takes to start agents as others.
# With --user 10001:10001 it is claudeops from the start, and agents have the same user under rules of Landlock.
USER 0:0
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --retries=3 CMD ["/app/claudeops", "health"]
ENTRYPOINT ["/app/claudeops"]
CMD ["serve"]
