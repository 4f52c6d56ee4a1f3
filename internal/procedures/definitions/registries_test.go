package definitions

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// forge is a registry on loopback with one plugin in two versions.
type forge struct {
	*httptest.Server
	mu       sync.Mutex
	files    map[string]string
	requests []string // method, path, and the token that came with it
	status   int      // of every answer, if not 0
	wants    string   // the Authorization header that it demands
}

func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{files: map[string]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	agent := agentYAML("writer", "2.0.0")
	plugin := func(version, checksum string) string {
		return fmt.Sprintf(`{"name":"@org/faber","version":%q,"description":"Workflows","author":"Ann","license":"MIT","tags":["flow"],
			"agents":[{"name":"writer","version":%q,"source":"writer.yaml","checksum":%q}],"tools":[],"dependencies":{"@org/base":"^1.0.0"}}`, version, version, checksum)
	}
	f.files["/writer.yaml"] = agent
	f.files["/faber-2.json"] = plugin("2.0.0", checksumOf([]byte(agent)))
	f.files["/faber-1.json"] = plugin("1.0.0", checksumOf([]byte("another text")))
	entry := func(version, file string) string {
		return fmt.Sprintf(
			`{"name":"@org/faber","version":%q,"description":"Workflows","manifest_url":%q,"tags":["flow"],"checksum":%q}`,
			version, file, checksumOf([]byte(f.files["/"+file])))
	}
	f.files["/registry.json"] = fmt.Sprintf(`{"name":"test","version":"1","plugins":[%s,%s]}`,
		entry("1.0.0", "faber-1.json"), entry("2.0.0", "faber-2.json"))
	return f
}

func (f *forge) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+
		r.Header.Get("X-Api-Key")))
	text, ok := f.files[r.URL.Path]
	etag := `"` + checksumOf([]byte(text))[7:20] + `"`
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
	case f.wants != "" && r.Header.Get("Authorization") != f.wants:
		w.WriteHeader(http.StatusUnauthorized)
	case !ok:
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", etag)
		_, _ = w.Write([]byte(text))
	}
}

func (f *forge) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// world is a catalog with registries and a clock.
type world struct {
	*Catalog
	config Config
	now    time.Time
}

func newWorld(t testing.TB, tokens map[string]string, registries ...map[string]any) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	text, err := json.Marshal(map[string]any{"registries": registries})
	must.Do(t, err)
	project, home := t.TempDir(), t.TempDir()
	operationtest.WriteFiles(t, home, map[string]string{".fractary/config.json": string(text)})
	if w.config, err = loadConfig(ConfigOptions{Project: project, Home: home}); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return w.now }
	token := func(name string) string { return tokens[name] }
	r := newRegistries(w.config, newCache(w.config.CacheDir, "", false, now), http.DefaultTransport, token)
	w.Catalog = newCatalog(options{Project: project, Home: home, Registries: r, Now: time.Now})
	return w
}

func (w *world) search(t testing.TB, query string, tags ...string) ([]string, []error) {
	t.Helper()
	found, failed := w.opts.Registries.Search(t.Context(), query, tags)
	out := []string{}
	for _, p := range found {
		out = append(out, p.Registry+" "+p.Name+"@"+p.Version)
	}
	return out, failed
}

func TestSearchAsksEveryRegistryAndNamesTheOneThatIsDown(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	w := newWorld(t, nil, map[string]any{"name": "up", "url": f.URL + "/registry.json"},
		map[string]any{"name": "down", "url": httpfault.NoListener, "priority": 1})
	for query, want := range map[string][]string{"FABER": {"up @org/faber@2.0.0"}, "flow": {"up @org/faber@2.0.0"},
		"nothing": {}} {
		got, failed := w.search(t, query)
		operationtest.Same(t, query, want, got)
		if len(failed) != 1 || codeOf(failed[0]) != NetworkError || !strings.Contains(failed[0].Error(), `"down"`) {
			t.Errorf("%s: failed %v", query, failed)
		}
	}
	if got, _ := w.search(t, "faber", "other"); len(got) != 0 {
		t.Errorf("with another tag: %v", got)
	}
}

func TestARegistryThatHangsIsNamedAndDelaysAListByItsTimeLimitOnly(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	asked := make(chan string, 100)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { close(released) })
	up := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"registry.json": `{"plugins":[{"name":"@a/b","version":"1.0.0","manifest_url":"plugin.json"}]}`,
		"plugin.json":   `{"name":"@a/b","version":"1.0.0","agents":[{"name":"far","version":"2.0.0"}]}`,
	})
	w := newWorld(t, nil, map[string]any{"name": "hangs", "url": hangs.URL},
		map[string]any{"name": "up", "url": up + "/registry.json"})
	o := w.opts
	o.ListTimeout = 2 * time.Second
	operationtest.WriteFiles(t, o.Project, map[string]string{
		".fractary/agents/near.yaml": agentYAML("near", "1.0.0"),
		".fractary/agents/f.yaml":    agentYAML("f", "1.0.0", "fork_of: {name: far, version: 1.0.0}"),
		".fractary/agents/g.yaml":    agentYAML("g", "1.0.0", "fork_of: {name: far, version: 2.0.0}"),
	})
	c := w.withOptions(o)
	listed, problems, err := c.List(t.Context(), Agent, "")
	names := []string{}
	for _, s := range listed {
		names = append(names, s.Name)
	}
	if err != nil || !slices.Equal(names, []string{"f", "far", "g", "near"}) {
		t.Errorf("listed %v, %v", names, err)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `"hangs" did not answer in time`) {
		t.Errorf("problems %v", problems)
	}
	forks, err := c.Forks(t.Context(), Agent)
	if err != nil || len(forks) != 2 || !forks[0].Updated() || forks[1].Updated() {
		t.Errorf("forks %v, %v", forks, err)
	}
	if len(asked) != 1 {
		t.Errorf("the registry was asked %d times by one call", len(asked))
	}
	if troubles := o.Registries.troubles(); len(troubles) != 1 {
		t.Errorf("troubles %v", troubles)
	}
}

func TestAnIndexIsAskedForAgainWhenItIsStale(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	w := newWorld(t, nil, map[string]any{"name": "up", "url": f.URL + "/registry.json", "cache_ttl": 60})
	w.search(t, "x")
	w.now = w.now.Add(59 * time.Second)
	w.search(t, "x")
	operationtest.Same(t, "while it is fresh", []string{"GET /registry.json"}, f.seen())
	w.now = w.now.Add(2 * time.Second)
	if got, failed := w.search(t, "faber"); len(got) != 1 || len(failed) > 0 || len(f.seen()) != 1 {
		t.Errorf("unchanged: %v, %v", got, failed)
	}
	w.search(t, "faber")
	if len(f.seen()) != 0 {
		t.Error("an unchanged index was asked for again at once")
	}
}

func TestADefinitionComesFromARegistryWithItsChecksum(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	w := newWorld(t, nil, map[string]any{"name": "up", "url": f.URL + "/registry.json"})
	found, err := w.Info(t.Context(), Agent, Reference{Name: "writer"}, "")
	if err != nil || found.Source != Stockyard || found.Definition.Version != "2.0.0" {
		t.Fatalf("%+v, %v", found, err)
	}
	f.seen()
	if _, err := w.Info(t.Context(), Agent, Reference{Name: "writer"}, Stockyard); err != nil || len(f.seen()) != 0 {
		t.Errorf("again: %v", err)
	}
	_, err = w.Info(t.Context(), Agent, Reference{Name: "writer", Range: "1.0.0"}, "")
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != AgentNotFound ||
		!strings.Contains(fmt.Sprint(refused.Suggestions), "another checksum") {
		t.Errorf("a wrong checksum: %v", err)
	}
	if got := listed(t, w.Catalog, Agent, Stockyard); len(got) != 2 {
		t.Errorf("listed %v", got)
	}
}

func TestAPluginWithAWrongChecksumIsNotKept(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.files["/faber-2.json"] += " "
	w := newWorld(t, nil, map[string]any{"name": "up", "url": f.URL + "/registry.json"})
	for range 2 {
		if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/faber"}); codeOf(err) != IntegrityError {
			t.Fatalf("got %v", err)
		}
	}
	remote, err := w.opts.Registries.Plugin(t.Context(), ParseReference("@org/faber@^1.0.0"))
	if err != nil || remote.Manifest.Version != "1.0.0" || len(remote.Versions) != 2 {
		t.Errorf("the other version: %+v, %v", remote, err)
	}
	if stats, err := w.opts.Registries.cache.stats(); err != nil || stats.Indexes != 1 || stats.Downloads != 1 {
		t.Errorf("cache: %+v, %v", stats, err)
	}
	if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/gone"}); codeOf(err) != PluginNotFound {
		t.Errorf("a plugin that nobody has: %v", err)
	}
}

func TestATokenGoesToItsOwnHostAlone(t *testing.T) {
	t.Parallel()
	f, other := newForge(t), newForge(t)
	f.wants = "Bearer s3cret"
	f.files["/registry.json"] = strings.ReplaceAll(f.files["/registry.json"], `"faber-2.json"`,
		`"`+other.URL+`/faber-2.json"`)
	own := map[string]any{"name": "own", "url": f.URL + "/registry.json",
		"auth": map[string]any{"type": "bearer", "token_env": "OWN"}}
	w := newWorld(t, map[string]string{"OWN": "s3cret", defaultTokenVariable: "default"}, own)
	if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/faber"}); codeOf(err) != PermissionDenied ||
		!strings.Contains(err.Error(), other.URL) {
		t.Errorf("a host that the operator has not named: %v", err)
	}
	if seen := other.seen(); len(seen) != 0 {
		t.Errorf("the host that the operator has not named got %v", seen)
	}
	w = newWorld(t, map[string]string{"OWN": "s3cret", defaultTokenVariable: "default"}, own, alsoNamed(other))
	if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/faber"}); err != nil {
		t.Error(err)
	}
	operationtest.Same(t, "the other host got", []string{"GET /faber-2.json"}, other.seen())
	for name, c := range map[string]struct {
		tokens map[string]string
		want   Code
	}{"no token": {nil, AuthRequired}, "a wrong token": {map[string]string{"OWN": "wrong"}, AuthFailed}} {
		_, failed := newWorld(t, c.tokens, own).search(t, "faber")
		if len(failed) != 1 || codeOf(failed[0]) != c.want || strings.Contains(failed[0].Error(), "wrong") {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

func TestARedirectToAnotherHostHasNoToken(t *testing.T) {
	t.Parallel()
	target := newForge(t)
	from := httptest.NewServer(http.RedirectHandler(target.URL+"/registry.json", http.StatusFound))
	t.Cleanup(from.Close)
	for _, auth := range []string{"bearer", "apikey"} {
		r := map[string]any{"name": "r", "url": from.URL, "auth": map[string]any{"type": auth, "token_env": "OWN"}}
		w := newWorld(t, map[string]string{"OWN": "s3cret"}, r)
		if _, failed := w.search(t, "faber"); len(failed) != 1 || codeOf(failed[0]) != PermissionDenied ||
			!strings.Contains(failed[0].Error(), target.URL) {
			t.Errorf("to a host that the operator has not named: %v", failed)
		}
		if seen := target.seen(); len(seen) != 0 {
			t.Errorf("the host that the operator has not named got %v", seen)
		}
		w = newWorld(t, map[string]string{"OWN": "s3cret"}, r, alsoNamed(target))
		if got, failed := w.search(t, "faber"); len(got) != 1 || len(failed) > 0 {
			t.Errorf("%v, %v", got, failed)
		}
		operationtest.Same(t, "a host that the operator has named got", []string{"GET /registry.json"}, target.seen())
	}
}

// alsoNamed is a registry at a forge's host, so that the operator has named it, which is not asked itself.
func alsoNamed(f *forge) map[string]any {
	return map[string]any{"name": "named", "url": f.URL + "/nothing", "enabled": false}
}

func TestRegistriesThatAnswerJunkAreNamed(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Code{404: NetworkError, 500: NetworkError, 401: AuthRequired, 403: AuthRequired} {
		f := newForge(t)
		f.status = status
		if _, failed := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL}).search(t, "x"); len(failed) != 1 ||
			codeOf(failed[0]) != want {
			t.Errorf("status %d: %v", status, failed)
		}
	}
	f := newForge(t)
	for _, junk := range []string{"<html>", "{}", `{"name": "r", "plugins": null}`, `{"message": "Not Found"}`, "[]"} {
		f.files["/registry.json"] = junk
		if _, failed := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL + "/registry.json"}).search(t,
			"x"); len(failed) != 1 {
			t.Errorf("%s: %v", junk, failed)
		}
	}
	f.files["/registry.json"] = `{"plugins": []}`
	if got, failed := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL + "/registry.json"}).search(t,
		"x"); len(got)+len(failed) > 0 {
		t.Errorf("an empty registry: %v, %v", got, failed)
	}
}

func TestARegistryMayBeAFolder(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	dir := t.TempDir()
	for name, content := range f.files {
		operationtest.WriteFiles(t, dir, map[string]string{name[1:]: content})
	}
	for _, address := range []string{dir, filepath.Join(dir, "registry.json"), "file://" + dir + "/registry.json"} {
		w := newWorld(t, nil, map[string]any{"name": "r", "url": address})
		if got, failed := w.search(t, "faber"); len(got) != 1 || len(failed) > 0 {
			t.Errorf("%s: %v, %v", address, got, failed)
		}
		if address == dir {
			continue
		}
		if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/faber"}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	f.files["/registry.json"] = strings.ReplaceAll(f.files["/registry.json"], `"faber-2.json"`, `"file:///etc/passwd"`)
	w := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL + "/registry.json"})
	if _, err := w.opts.Registries.Plugin(t.Context(), Reference{Name: "@org/faber"}); codeOf(err) != PermissionDenied {
		t.Errorf("a registry elsewhere that names a file here: %v", err)
	}
}

func TestTheOlderPlaceOfTheCacheIsRead(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	older := t.TempDir()
	now := time.Now()
	for name, at := range map[string]string{"ms": fmt.Sprint(now.UnixMilli()), "s": fmt.Sprint(now.Unix()),
		"text": `"` + now.Format(time.RFC3339) + `"`} {
		operationtest.WriteFiles(t, older,
			map[string]string{name +
				".json": fmt.Sprintf(`{"url":"http://127.0.0.1:1/x","manifest":%s,"fetched_at":%s,"ttl":3600}`,
				f.files["/registry.json"], at)})
		c := Config{Registries: []Registry{{Name: name, Type: "manifest", URL: "http://127.0.0.1:1/x", Priority: 1, TTL: 3600,
			named: trust.Said(&url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/x"})}},
			Resolution: Resolution{true, true, true}}
		r := newRegistries(c, newCache(t.TempDir(), older, false, time.Now), http.DefaultTransport, os.Getenv)
		if found, failed := r.Search(t.Context(), "faber", nil); len(found) != 1 || len(failed) > 0 {
			t.Errorf("%s: %v, %v", name, found, failed)
		}
	}
}
