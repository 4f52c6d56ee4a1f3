package definitions

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAFileOfTheProjectDoesNotSayWhereTheCacheIs(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	theirs := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{"settings.json": "{}", "downloads/letter.pdf": "dear", "test.json": "mine"})
	before := operationtest.ReadFiles(t, theirs)
	config := fmt.Sprintf(`{"registries":[{"name":"settings","url":"%s/registry.json"}]}`, f.URL)
	b := newBench(t, map[string]string{".fractary/config.json": fmt.Sprintf(`{"cache":{"directory":%q}}`, theirs)},
		map[string]string{".fractary/config.json": config})
	b.ask("plugin_info", `{"plugin":"@org/faber","remote":true}`)
	b.same("cache_stats", `{}`, map[string]any{"manifests.count": 1.0, "downloads.count": 1.0,
		"location": filepath.Join(b.settings.Home, ".fractary/cache")})
	b.same("cache_clear", `{}`, map[string]any{"cleared.manifests": 1.0, "cleared.downloads": 1.0})
	operationtest.Same(t, "the folder that the project named", before, operationtest.ReadFiles(t, theirs))
	for _, tool := range []string{"config_get", "cache_stats"} {
		arguments := map[string]string{"config_get": `{"key":"cache.directory"}`, "cache_stats": `{}`}[tool]
		if notes := b.notes(tool, arguments); !strings.Contains(notes, "cache.directory of "+b.settings.Project) {
			t.Errorf("%s says %s", tool, notes)
		}
	}

	// Nor does the operator by a path that leads into the project, where others write.
	for _, dir := range []string{"cache", filepath.Join(b.settings.Project, "cache")} {
		b.settings.CacheDir, b.service = dir, nil
		b.same("cache_stats", `{}`, map[string]any{"location": ""})
		if notes := b.notes("plugin_search", `{"query":"x"}`); !strings.Contains(notes, "lies in the project") {
			t.Errorf("%s: %s", dir, notes)
		}
		if _, err := os.Lstat(filepath.Join(b.settings.Project, "cache")); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
}

func TestNothingButWhatTheCacheListsIsWrittenOverOrRemoved(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	strangers := map[string]string{
		"r.json": "not Forge's", "other.json": `{"url":"x"}`, "downloads/" + strings.Repeat("a", 64): "theirs",
		"claudeops/downloads/" + strings.Repeat("b", 64): "theirs",
		"claudeops/registries/x.json":                    "theirs", "claudeops/notes.txt": "theirs", ".new-1": "theirs",
	}
	dir := operationtest.WriteFiles(t, t.TempDir(), strangers)
	w := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL + "/registry.json"})
	r := w.opts.Registries
	r.cache = newCache(dir, "", false, time.Now)
	if _, err := r.Plugin(t.Context(), Reference{Name: "@org/faber"}); err != nil {
		t.Fatal(err)
	}
	kept := operationtest.ReadFiles(t, dir)
	if len(kept) != len(strangers)+4 { // the list, the lock, an index and a plugin.json
		t.Errorf("kept %v", kept)
	}
	list := filepath.Join(dir, "claudeops", cacheListName)
	more := kept["claudeops/files"] + "../r.json\n../../x\n/etc/passwd\nregistries/x.json\nnotes.txt\n"
	must.Do(t, os.WriteFile(list, []byte(more), 0o600))
	if got, err := newCache(dir, "", false, time.Now).clear(CacheClearing{Indexes: true, Downloads: true},
		false); err != nil || got.Indexes != 1 || got.Downloads != 1 {
		t.Errorf("cleared %+v, %v", got, err)
	}
	left := operationtest.ReadFiles(t, dir)
	maps.DeleteFunc(left, func(name, _ string) bool { return name == "claudeops/files" || name == "claudeops/lock" })
	operationtest.Same(t, "what others have", strangers, left)
}

func TestTheCacheFollowsNoLink(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	index := indexName(Registry{Name: "r", URL: f.URL + "/registry.json"})
	links := []string{"claudeops", "claudeops/registries", "claudeops/downloads", "claudeops/files", "claudeops/lock",
		"claudeops/" + index, "r.json"}
	for i, link := range append(links, links[1:]...) {
		dir := t.TempDir()
		theirs := filepath.Join(dir, "theirs")
		if i >= len(links) { // within the folder
			theirs = filepath.Join(dir, "cache", "claudeops", "theirs")
		}
		operationtest.WriteFiles(t, theirs, map[string]string{"keep": "me"})
		target := theirs
		if strings.Contains(filepath.Base(link), ".json") || link == "claudeops/files" || link == "claudeops/lock" {
			target = operationtest.WriteFiles(t, theirs, map[string]string{"file": fmt.Sprintf(
				`{"url":"%s/registry.json","manifest":{"plugins":[{"name":"forged","version":"9.0.0"}]},"fetched_at":%d}`, f.URL,
				time.Now().UnixMilli())}) + "/file"
		}
		cache := filepath.Join(dir, "cache")
		must.Do(t, os.MkdirAll(filepath.Join(cache, filepath.Dir(link)), 0o700))
		to, err := filepath.Rel(filepath.Dir(filepath.Join(cache, link)), target)
		must.Do(t, err)
		must.Do(t, os.Symlink(to, filepath.Join(cache, link)))
		before := operationtest.ReadFiles(t, theirs)
		w := newWorld(t, nil, map[string]any{"name": "r", "url": f.URL + "/registry.json"})
		w.opts.Registries.cache = newCache(cache, "", false, time.Now)
		if got, failed := w.search(t, ""); len(failed) > 0 || len(got) != 1 || strings.Contains(got[0], "forged") {
			t.Errorf("%s: %v, %v", link, got, failed)
		}
		// may say why not
		_, _ = newCache(cache, "", false, time.Now).clear(CacheClearing{Indexes: true, Downloads: true}, false)
		operationtest.Same(t, link, before, operationtest.ReadFiles(t, theirs))
	}
}

func TestACallThatReadsWritesNothingWhereNothingMayBeWritten(t *testing.T) {
	t.Parallel()
	b, f := withForge(t, map[string]string{".fractary/agents/mine.yaml": agentYAML("mine", "1.0.0",
		"fork_of: {name: writer, version: 2.0.0}")}, nil)
	b.settings.Frozen, b.authority.DryRun = func() bool { return true }, true
	home, project := operationtest.ReadFiles(t, b.settings.Home), operationtest.ReadFiles(t, b.settings.Project)
	b.everyTool()
	if len(f.seen()) == 0 {
		t.Error("no registry was asked")
	}
	operationtest.Same(t, "home", home, operationtest.ReadFiles(t, b.settings.Home))
	operationtest.Same(t, "project", project, operationtest.ReadFiles(t, b.settings.Project))
	b.settings.Frozen, b.service = nil, nil
	b.everyTool()
	if len(operationtest.ReadFiles(t, b.settings.Home)) == len(home) {
		t.Error("where it may be written, nothing is kept")
	}
}

func TestTheCacheIsBoundedAndTheOldestGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newCache(dir, "", false, time.Now)
	c.maxBytes, c.maxEntries = 1000, 8
	keep := func(c *Cache, i, size int) string {
		content := []byte(fmt.Sprintf("%*d", size, i))
		sum := checksumOf(content)
		must.Do(t, c.keepDownload(sum, content))
		at := time.Unix(int64(1e9+i), 0)
		must.Do(t, os.Chtimes(filepath.Join(dir, "claudeops", downloadName(sum)), at, at))
		return sum
	}
	var sums []string
	for i := range 50 {
		if i == 30 { // another process goes on
			c = newCache(dir, "", false, time.Now)
			c.maxBytes, c.maxEntries = 1000, 8
		}
		sums = append(sums, keep(c, i, 10+i%3*100))
		stats, err := c.stats()
		if err != nil || stats.DownloadBytes > 1000 || stats.Downloads > 8 || stats.Downloads == 0 {
			t.Fatalf("after %d: %+v, %v", i, stats, err)
		}
	}
	_, oldest := c.download(sums[0])
	_, newest := c.download(sums[49])
	if oldest || !newest {
		t.Errorf("the oldest is there: %t; the newest: %t", oldest, newest)
	}
	if err := c.keepDownload(checksumOf(make([]byte, 1001)), make([]byte, 1001)); err == nil {
		t.Error("a file is kept that is larger than the whole cache")
	}
}

func TestSeveralProcessesKeepWhatEachHasFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const each, processes = 20, 4
	done := make(chan error, processes)
	for p := range processes {
		go func() {
			c := newCache(dir, "", false, time.Now)
			for i := range each {
				content := []byte(fmt.Sprint(p, " ", i))
				if err := c.keepDownload(checksumOf(content), content); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range processes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if stats, err := newCache(dir, "", false, time.Now).stats(); err != nil || stats.Downloads != each*processes {
		t.Errorf("%+v, %v", stats, err)
	}
}
