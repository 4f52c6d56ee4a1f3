# The commands of the project. `make run` and `make test` need Go, git and make; the race detector needs a C compiler as well.
SHELL := /bin/bash
BIN   := bin/claudeops
E2E   := e2e
FUZZTIME ?= 20s
# A package's tests are ended after this time. It is long, so that a machine busy with other work fails no test.
TEST_TIMEOUT ?= 30m
# The race detector looks at our code and all libraries but these: SQLite translated to Go, regular expressions, the parser of
# templates and compression, which hold no state of ours and take most of the time under it.
RACE := -race $(foreach library,modernc.org/... regexp/... github.com/BobuSumisu/... text/template/parse compress/flate,-gcflags='$(library)=-race=false')
# Tests run with little memory: collecting garbage this much less often saves an eighth of their time.
TEST_ENV := GOGC=400
# Many tests wait for the disk, for processes and for stalls that they have arranged, so that more of them run at once than there are
# cores: packages in test-most, tests of a package in test-faults.
PACKAGES_AT_ONCE ?= 4
FAULTS_AT_ONCE ?= 12
# The packages that take longest come first, so that none of them runs alone at the end.
LONGEST := ./internal/cli ./internal/web ./internal/proposals/prflow ./internal/gitprovider/local ./internal/procedures/deploy ./internal/system/change ./internal/system/confine

# These packages let a thousand proposals fail in a thousand ways, or be killed, and mostly wait for processes and disks. What they run
# is looked at by the race detector in the packages' own tests; here it would take longer than all other tests together.
UNRACED := ./internal/testkit/resilience ./internal/testkit/crash

export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

.PHONY: release-snapshot build run demo test test-most test-faults test-live check lint bench fuzz styles golden e2e screenshots crash clean

# counted hides the names of the packages that are downloaded and compiled, and says how many there were. Errors stay.
counted = 2> >(awk '/^go: downloading /{if (++d % 25 == 0) print "  " d " modules downloaded"; next} \
  /^[A-Za-z0-9_.~\/-]+$$/{if (++n % 100 == 0) print "  " n " packages compiled"; next} {print} {fflush()}' >&2)

build: ## build the program, and the connector that stands beside it
	@[ -x $(BIN) ] || echo "The first build downloads and compiles about 500 packages: two minutes on two cores. Later builds take seconds."
	@echo "go build -o $(BIN) ./cmd/claudeops"; go build -v -ldflags='-s -w' -o $(BIN) ./cmd/claudeops $(counted)
	go build -ldflags='-s -w' -o $(BIN)-connect ./cmd/claudeops-connect

run: build ## the dashboard, while an agent opens pull requests and is refused; stays until Ctrl-C
	$(BIN) demo --serve

demo: build ## the same without the dashboard, then the life of one procedure: prints what happens, and ends
	$(BIN) demo
	$(BIN) demo --life

test: ## every test that needs no other program than Go and git, with the race detector if there is a C compiler
	@command -v "$${CC:-$$(go env CC)}" >/dev/null 2>&1 || \
	  echo "make test: no C compiler ($${CC:-$$(go env CC)}): the tests run without the race detector" >&2
	@$(MAKE) --no-print-directory -j2 test-most test-faults

test-most: # all packages but UNRACED
	@most=$$(go list ./... | grep -vE '$(subst $() ,|,$(patsubst ./%,/%$$,$(UNRACED)))'); set -x; \
	if command -v "$${CC:-$$(go env CC)}" >/dev/null 2>&1; then $(TEST_ENV) CGO_ENABLED=1 go test $(RACE) -p $(PACKAGES_AT_ONCE) -count=1 -timeout $(TEST_TIMEOUT) $(LONGEST) $$most; \
	else $(TEST_ENV) CGO_ENABLED=0 go test -p $(PACKAGES_AT_ONCE) -count=1 -timeout $(TEST_TIMEOUT) $(LONGEST) $$most; fi

test-faults: # UNRACED; they wait more than they compute, so that they run beside the others
	$(TEST_ENV) CGO_ENABLED=0 go test -parallel $(FAULTS_AT_ONCE) -count=1 -timeout $(TEST_TIMEOUT) $(UNRACED)
	set -e; for module in tools/gitleaks tools/man; do (cd $$module && $(TEST_ENV) CGO_ENABLED=0 go test -count=1 -timeout $(TEST_TIMEOUT) .); done

check: lint test ## what must hold before a commit

lint: ## formatting, vet and the linters of .golangci.yml
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./... && go vet -tags e2e,postgres,live ./...
	go tool -modfile=tools/go.mod golangci-lint run --build-tags e2e,postgres,live ./...
	go tool -modfile=tools/files/go.mod actionlint .github/workflows/*.yml
	go tool -modfile=tools/files/go.mod actionlint -ignore 'specifying action "https://github.com/' .gitea/workflows/*.yml
	go tool -modfile=tools/files/go.mod kustomize build deploy/kubernetes/overlays/example >/dev/null

bench: build ## the benchmarks of docs/explain/benchmarks.md
	./bench/run.sh $(BIN)

fuzz: ## each fuzz target for FUZZTIME
	@set -e; for target in $$(grep -rl --include='*_test.go' '^func Fuzz' internal | sort); do \
	  dir=$$(dirname $$target); \
	  for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$target); do \
	    echo "== ./$$dir $$name"; go test ./$$dir -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME); \
	  done; \
	done

styles: ## make the kept style sheet and icons of the dashboard anew; needs npm
	cd tools/styles && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && node make.mjs

golden: ## rewrite the snapshots that tests compare with; look at the diff
	UPDATE_GOLDEN=1 go test -count=1 -run Schemas $$(grep -rl --include='*_test.go' operationtest.Schemas internal | xargs -n 1 dirname | sed 's,^,./,' | sort -u)
	cd tools/gitleaks && UPDATE_GOLDEN=1 go test -count=1 -run TestTheRulesAreThoseOfGitleaks .
	UPDATE_GOLDEN=1 go test -count=1 -run '^Test(ThePageOf|TheBehaviourOf|TheDescriptionHas|ToolsListInBothEras|Scripts)' ./internal/mcpserver ./internal/cli ./internal/web ./internal/web/metrics ./internal/testkit/agentdocs ./internal/base/outgoing

e2e: build ## the real Claude CLI, the MCP Inspector, Chromium and PostgreSQL; installs them by npm and Debian's packages
	./$(E2E)/setup.sh
	go test -tags e2e -count=1 -timeout 40m ./$(E2E)
	./$(E2E)/postgres.sh go test -tags postgres -count=1 -timeout 40m ./internal/records/store
	./$(E2E)/postgres.sh go test -tags postgres -count=1 -timeout 40m ./internal/testkit/crash

screenshots: build ## pictures of each page of the dashboard, light and dark, wide and narrow, for the documentation; needs what make e2e installs
	mkdir -p docs/images/pages
	CLAUDEOPS_PICTURES=$(CURDIR)/docs/images/pages go test -tags e2e -count=1 -timeout 20m -run '^Test(APersons|Catalogue|Packages|Deployments|Dashboard(Follows|ShowsWho))' ./$(E2E)
	go run ./$(E2E)/screenshots $(BIN) docs

test-live: ## the contract suite, and what goes wrong in between, against real forges: set GITEA_URL and GITEA_TOKEN, or what docs/guides/development.md says for GitHub
	@[ -n "$$GITEA_TOKEN$$GITHUB_TOKEN" ] || { echo "set GITEA_URL and GITEA_TOKEN, or GITHUB_TOKEN; see docs/guides/development.md" >&2; exit 2; }
	@if [ -n "$$GITEA_TOKEN" ]; then set -ex; \
	  go test -tags live -count=1 -parallel 2 -timeout 30m -run TestLive -skip 'TestLive/complete_list' ./internal/gitprovider/gitea; \
	  go test -tags live -count=1 -timeout 30m -run 'TestLive/complete_list' ./internal/gitprovider/gitea; \
	  go test -tags live -count=1 -parallel 4 -timeout 30m -run TestLive ./internal/testkit/resilience; fi
	@if [ -n "$$GITHUB_TOKEN" ]; then set -x; go test -tags live -count=1 -parallel 1 -timeout 240m -run TestLive ./internal/gitprovider/github; fi

crash: ## processes killed at random moments, again and again; see docs/explain/crash-safety.md
	go test -count=$(or $(ROUNDS),5) -timeout 60m -run KillNine ./internal/testkit/crash
	CRASH_ROUNDS=$(or $(KILLS),300) go test -count=1 -timeout 60m -run 'KilledAtRandomMoments|EightProcesses' ./internal/system/change ./internal/procedures/packages

release-snapshot: ## what a release holds, in dist, without a tag and without publishing; installs the deb in a clean root if run as root
	CGO_ENABLED=0 go tool -modfile=tools/release/go.mod goreleaser release --snapshot --clean --skip=sign,docker$$(command -v syft >/dev/null || echo ,sbom)
	./deploy/packages/archives.sh dist/claudeops_*.tar.gz dist/claudeops_*.zip
	@if [ "$$(id -u)" = 0 ] && command -v dpkg >/dev/null; then set -x; ./deploy/packages/test.sh dist/claudeops_*_linux_$$(go env GOARCH).deb; \
	else echo "make release-snapshot: the deb was not installed, which needs root and dpkg" >&2; fi

clean:
	rm -rf bin dist dist-files $(E2E)/node_modules
