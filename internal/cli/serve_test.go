package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// closingListener tells when it is closed. Its address would not: another test may listen there by then.
type closingListener struct {
	net.Listener
	once   sync.Once
	closed chan struct{}
}

func (l *closingListener) Close() error {
	err := l.Listener.Close()
	l.once.Do(func() { close(l.closed) })
	return err
}

func TestAServerThatIsToldToEndAnswersWhatItHasBegun(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	entered, release := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if r.Context().Err() != nil {
			t.Error("the request was cancelled")
		}
		_, _ = io.WriteString(w, "done")
	})}
	listener := must.Get(new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"))(t)
	p := &app.Parts{Log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	closing := &closingListener{Listener: listener, closed: make(chan struct{})}
	go func() { ended <- app.ServeUntil(ctx, p, server, closing) }()
	answered := make(chan string, 1)
	go func() {
		answer, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		answered <- string(text)
	}()
	<-entered
	stop()
	<-closing.closed // it listens no more, and yet waits
	select {
	case err := <-ended:
		t.Fatalf("it ended with a request under way: %v", err)
	default:
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestTheTokenOfTheFirstStartIsInTheAuditAndKeptOutOfTexts(t *testing.T) {
	t.Parallel()
	_, p := newProcess(t, map[string]string{"CLAUDEOPS_STATE_DIR": t.TempDir()})
	secret, err := app.NewSignIn(p).OperatorToken(t.Context())
	if err != nil || secret == "" {
		t.Fatalf("%q, %v", secret, err)
	}
	if got := p.Scanner.Redact("it is " + secret); strings.Contains(got, secret) {
		t.Errorf("not redacted: %s", got)
	}
	rows, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{})
	if err != nil || len(rows) != 1 || rows[0].Action != "token.create" || rows[0].Outcome != record.OutcomeDone ||
		!strings.Contains(rows[0].Message, "token operator (") || strings.Contains(rows[0].Message, secret) {
		t.Errorf("the audit has %+v, %v", rows, err)
	}
	if _, err := app.NewSignIn(p).OperatorToken(t.Context()); err != nil {
		t.Error(err)
	}
	if rows, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{}); err != nil || len(rows) != 1 {
		t.Errorf("the second start: %+v, %v", rows, err)
	}
}

// What a page of the dashboard fetches is in the audit, as what a tool fetches is; so is a fetch that fails.
func TestWhatAPageFetchesIsInTheAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := filepath.Join(dir, "far", "joe", "infra")
	url := "file://" + filepath.ToSlash(far)
	operationtest.WriteFiles(t, dir, map[string]string{
		"home/.keep": "", "project/.keep": "",
		"agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_modules: [p]}}\ntargets: {vscode: " +
			"{}}\nmodules: [{id: p, type: prompt, source: {git: {url: '" + url + "'}}}]\n",
	})
	makeRepository(t, far, streamOf("ask.md", "Ask.\n"))
	env := map[string]string{
		"HOME": filepath.Join(dir, "home"), "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"),
		"AGENTPACK_HOME": filepath.Join(dir, "agentpack"), "CLAUDEOPS_TOOLSETS": "pr,deploy",
	}
	a := &commandLine{streams: Streams{Out: io.Discard, Err: io.Discard},
		lookup: valuesOf(env), folder: filepath.Join(dir, "project")}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = a.program().Close() })
	d := app.NewDeployments(p)
	if _, err := d.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Preview(t.Context(), deploy.Candidate{Provider: "gitea", Owner: "joe", Name: "infra",
		Commit: strings.Repeat("0", 40)}); err == nil {
		t.Error("a commit that is not there")
	}
	got, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{Ascending: true, Limit: 10})
	must.Do(t, err)
	if len(got) != 2 || got[0].Outcome != record.OutcomeDone || got[1].Outcome == record.OutcomeDone ||
		got[1].Repo != "infra" {
		t.Fatalf("%+v", got)
	}
	for _, row := range got {
		if row.Door != record.DoorWeb || row.Action != deploy.ToolPlan ||
			!strings.Contains(row.Message, "fetched from "+url) {
			t.Errorf("%+v", row)
		}
	}
}
