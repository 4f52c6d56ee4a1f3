# The commands of the project. `make run` and `make test` need Go, git and make.
SHELL := /bin/bash
BIN   := bin/claudeops
E2E   := e2e
FUZZTIME ?= 20s
# A package's tests are ended after this time. It is long, so that a machine busy with other work fails no test.
TEST_TIMEOUT ?= 30m
# Collecting garbage this much less often saves an eighth of the time, up to this much memory for each package. Without
# a template git copies no sample hooks into each repository that a test makes.
TEST_ENV := GOGC=400 GOMEMLIMIT=3GiB GIT_TEMPLATE_DIR=
# Many tests wait for the disk and for processes, so more packages run at once than there are cores.
PACKAGES_AT_ONCE ?= 4
# The packages that take longest come first, so that none of them runs alone at the end.
LONGEST := ./internal/testkit/crash ./internal/testkit/resilience ./internal/cli ./internal/web ./internal/procedures/deploy \
  ./internal/gitprovider/local ./internal/proposals/prflow ./internal/procedures/packages
SUITE := go run ./internal/testkit/suite
# Temporary files of tests are in memory, unless somebody says where they are.
MEMORY := $(if $(TMPDIR)$(GOTMPDIR),,-memory)
# make lint vets the packages and their tests.
SUITE_FLAGS := -count=1 -vet=off -p=$(PACKAGES_AT_ONCE) -timeout=$(TEST_TIMEOUT)
# The race detector looks at our code and all libraries but these: SQLite and C's library translated to Go, regular expressions,
# the parser of templates and compression. They hold no state of ours and take most of the time under it. None of them may
# use sync.Map: its code would be compiled into the library without the detector, and the linker takes one copy for all.
RACE_FLAGS := -race $(foreach library,modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory modernc.org/mathutil regexp/... \
  text/template/parse compress/flate,-gcflags=$(library)=-race=false)
# Tests that count what a text allocates, of which the detector allocates more; and long ones in which nothing runs at the
# same time in one process: steps, pages, attacks and updates one after another, processes that are killed, and a second
# sort of repository.
UNRACED := CostsMuch|CostLittle|CostsLittle|KilledAt(EveryStep|RandomMoments)|EightProcesses|RefusedCallsDoNotFill|$\
  WhatAgentsWriteIsShownHarmless|AuditIsShownVerified|NoLinkOfAnyPage|LocalFulfilsTheContract/ordinary|ThePageOfAttacks|$\
  AnUpdate(NeverTouches|ThatWasKilled)
# The packages that start goroutines or guard state that goroutines share. internal/cli does too, but only by starting
# the whole program, whose parts are all in this list.
RACED = $(shell git grep -lE '^[[:space:]]*go [a-z]|[.]Go[^a-zA-Z]|"sync(/atomic)?"' -- 'internal/*.go' ':!*_test.go' ':!internal/testkit' ':!internal/cli' \
  | xargs -n 1 dirname | sort -u | sed 's,^,./,')
# Rounds of make soak, how many test binaries it runs at a time, and on which core.
N ?= 20
LOAD ?= 20
CORE ?= 0
FIRST ?= 1

export CGO_ENABLED ?= 0
export GOFLAGS ?= -trimpath

.PHONY: release-snapshot build run demo test race soak bench-facts attacks e2e e2e-attacks e2e-pages e2e-clients e2e-postgres e2e-systemd test-live check lint bench fuzz styles golden screenshots crash clean year

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

test: ## every test that needs no other program than Go and git; temporary files are in memory unless TMPDIR is set
	@$(TEST_ENV) CGO_ENABLED=0 $(SUITE) $(MEMORY) -flags '$(SUITE_FLAGS)' -module tools/gitleaks -module tools/man $(LONGEST) ./...

race: ## the tests of the packages with concurrency of their own, under the race detector; needs a C compiler
	@command -v "$${CC:-$$(go env CC)}" >/dev/null 2>&1 || { echo "make race: install a C compiler ($${CC:-$$(go env CC)})" >&2; exit 1; }
	@$(TEST_ENV) CGO_ENABLED=1 $(SUITE) $(MEMORY) -flags '$(SUITE_FLAGS) -skip=$(UNRACED) $(RACE_FLAGS)' $(filter $(RACED),$(LONGEST)) $(RACED)

soak: ## N=20 runs of the tests, each in another order, LOAD=20 packages at a time on one core beside a busy disk; Linux
	@$(TEST_ENV) CGO_ENABLED=0 $(SUITE) -soak $(N) -load $(LOAD) -core $(CORE) -first $(FIRST) $(LONGEST) ./...

check: lint test ## what must hold before a commit

# golangci-lint vets what Linux has, but for the files that its tag postgres leaves out.
SQLITE_ALONE = $(shell git grep -l '^//go:build.*!postgres' -- '*.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,')

lint: ## formatting, vet and the linters of .golangci.yml
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet $(SQLITE_ALONE) && GOOS=windows go vet ./... && GOOS=darwin go vet ./...
	go test -tags lint -count=1 ./internal/testkit/architecture
	go tool -modfile=tools/go.mod golangci-lint run --build-tags e2e,postgres,live,lint ./...
	go tool -modfile=tools/files/go.mod actionlint .github/workflows/*.yml
	go tool -modfile=tools/files/go.mod actionlint -ignore 'specifying action "https://github.com/' .gitea/workflows/*.yml
	go tool -modfile=tools/files/go.mod kustomize build deploy/kubernetes/overlays/example >/dev/null
	! command -v promtool >/dev/null || promtool test rules deploy/prometheus/claudeops.rules.test.yaml

bench: build ## the benchmarks of docs/explain/benchmarks.md
	./bench/run.sh $(BIN)

bench-facts: ## in how many poisoned changes the reader of facts sees a fact, and in how many clean ones; DIR=FOLDER for other collections
	go run ./bench/facts $(if $(DIR),-dir $(DIR))

attacks: ## attacks on each rule for proposals, and poisoned texts: prints what was tried and what answered; part of make test
	go test -count=1 -run '^TestThePageOfAttacks' ./internal/proposals/prflow
	@cat internal/proposals/prflow/testdata/attacks.txt; sed -n '/texts: written/,/end of texts/p' docs/explain/attacks.md | grep '^|'

year: ## 100 days of a server's records in minutes: sessions, refusals, revisions, retention, backups; says what they take
	go run ./bench/year

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
	UPDATE_GOLDEN=1 go test -count=1 -timeout=$(TEST_TIMEOUT) -run '^Test(ThePageOf|TheBehaviourOf|TheDescriptionHas|TheFilesOfDeployment|ToolsListInBothEras|WhatEachClientReads|Scripts)' ./internal/mcpserver ./internal/cli ./internal/web ./internal/web/health ./internal/testkit/agentdocs ./internal/testkit/deploytest ./internal/base/sanitize ./internal/proposals/prflow

# The end-to-end tests run in five parts beside each other, since each waits for other programs: those of pages, which
# share a browser, those of clients, that of an agent which attacks, the suites that need PostgreSQL, and the package in a
# booted Debian. The first two do one thing at a time, so the others, which do many, take what these leave of the processors.
# The longest tests of clients come last, two at a time, when others have ended.
# The attacking agent's folders are below /tmp, where its boundary expects them, so they are not in memory.
ATTACKS := AnAgentWithAShell
PAGES := ^Test(Dashboard|APerson|PeopleSignIn|Catalogue|PackagesPages|Deployments)|SignedIn|SignsOut|Rights|Foretold|$\
  OtherOrigin|WithoutANameOfItsOwn
# What is of git alone, or of the chain of the audit and of counting whatever holds the rows, make test holds with SQLite.
# So does it what of a revision or an answer locks and writes as a new proposal does, of which each way on is tried. Kills
# at random moments, and at first use, have four lanes there and a lane or two here.
AS_WITH_SQLITE := GitCommand|TitleOfOld|OfA(Revision|nAnswer)/(again|another|resume)|OfAStaleClose/by_1|$\
  StateFolderLost/(reserved|recorded|labelled)|LoseNoCommit/tier|WhatACountOfAllFinds/[123]|ANaiveCountFinds/[2345]|$\
  VerifyNamesTheFirstBadRow/(row|beginning)|ALimitIsBounded|KillNineAtRandomMoments/lane_[123]|KillNineAtFirstUse/lane_[23]
# make lint vets them.
E2E_FLAGS := -tags=e2e -count=1 -vet=off -timeout=40m
POSTGRES_FLAGS := -tags=postgres -count=1 -vet=off -timeout=40m

e2e: build ## the real Claude CLI, the MCP Inspector, Chromium and PostgreSQL; installs them by npm and Debian's packages
	./$(E2E)/setup.sh
	./$(E2E)/postgres.sh true
	@$(MAKE) --no-print-directory -j5 PROGRAMS=bin e2e-attacks e2e-pages e2e-clients e2e-postgres e2e-systemd

e2e-pages:
	@$(SUITE) $(MEMORY) -flags '$(E2E_FLAGS) -run=$(PAGES)' ./$(E2E)

e2e-clients:
	@$(SUITE) $(MEMORY) -flags '$(E2E_FLAGS) -skip=$(PAGES)|$(ATTACKS)' ./$(E2E)

e2e-attacks:
	@nice $(SUITE) -flags '$(E2E_FLAGS) -parallel=3 -run=$(ATTACKS)' ./$(E2E)

e2e-postgres:
	@nice ./$(E2E)/postgres.sh sh -c "$(SUITE) -flags '$(POSTGRES_FLAGS) -skip=$(AS_WITH_SQLITE)' ./internal/testkit/crash ./internal/records/store && \
	  go test $(POSTGRES_FLAGS) -run TestPagesSideBySide ./internal/web"

e2e-systemd: ## the package in a booted Debian's systemd, where that can be; PROGRAMS=bin takes what make build has built
	@nice ./$(E2E)/systemd.sh $(PROGRAMS)

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
	@if [ -n "$$GITHUB_TOKEN" ]; then set -x; go test -tags live -count=1 -v -timeout 20m -run TestLive ./internal/gitprovider/github; fi

crash: ## processes killed at random moments, and paused while eight propose, again and again; see docs/explain/crash-safety.md
	go test -count=$(or $(ROUNDS),10) -timeout 60m -run KillNine ./internal/testkit/crash
	CLAUDEOPS_PAUSE_ROUNDS=$(or $(PAUSES),200) go test -count=1 -timeout 60m -run NothingIsWrittenAfterAPause ./internal/testkit/crash
	CRASH_ROUNDS=$(or $(KILLS),300) go test -count=1 -timeout 60m -run 'KilledAtRandomMoments|EightProcesses' ./internal/system/fileset ./internal/procedures/packages

release-snapshot: ## what a release holds, in dist, without a tag and without publishing; installs the deb in a clean root if run as root
	CGO_ENABLED=0 go tool -modfile=tools/release/go.mod goreleaser release --snapshot --clean --skip=sign,docker$$(command -v syft >/dev/null || echo ,sbom)
	./deploy/packages/archives.sh dist/claudeops_*.tar.gz dist/claudeops_*.zip
	@if [ "$$(id -u)" = 0 ] && command -v dpkg >/dev/null; then set -ex; ./deploy/packages/test.sh dist/claudeops_*_linux_$$(go env GOARCH).deb; \
	  ! command -v debootstrap >/dev/null || ./deploy/packages/systemd.sh dist/claudeops_*_linux_$$(go env GOARCH).deb; \
	else echo "make release-snapshot: the deb was not installed, which needs root and dpkg" >&2; fi

clean:
	rm -rf bin dist dist-files $(E2E)/node_modules
