package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func manifestOf(name, version string, dependencies ...string) string {
	skill := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "--")
	text := fmt.Sprintf(
		"name: %q\nversion: %s\ndescription: For tests\nauthor: ann\nartifacts:\n  skills:\n    - {name: %s, path: "+
			"skills/look/, description: Looks}\n", name, version, skill)
	for i := 0; i+1 < len(dependencies); i += 2 {
		if i == 0 {
			text += "dependencies:\n"
		}
		text += fmt.Sprintf("  %q: %q\n", dependencies[i], dependencies[i+1])
	}
	return text
}

// folderOfPackage is the folder of a package.
func folderOfPackage(t testing.TB, name, version string, dependencies ...string) string {
	t.Helper()
	return operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		manifestName: manifestOf(name, version, dependencies...), "skills/look/SKILL.md": "# Look\n",
		"skills/look/run.sh": "#!/bin/sh\n",
	})
}

func publish(t testing.TB, r Registry, tag, name, version string, dependencies ...string) {
	t.Helper()
	must.Do(t, tryPublish(t, r, tag, name, version, dependencies...))
}

func tryPublish(t testing.TB, r Registry, tag, name, version string, dependencies ...string) error {
	t.Helper()
	return publishFolder(t.Context(), r, tag, folderOfPackage(t, name, version, dependencies...),
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
}

// publishFolder packs a folder and publishes it.
func publishFolder(ctx context.Context, r Registry, tag, dir string, at time.Time) error {
	archive, err := Pack(dir)
	if err != nil {
		return err
	}
	packed, err := Unpack(archive)
	if err != nil {
		return err
	}
	_, err = r.Publish(ctx, packed.Manifest, archive, tag, at)
	return err
}

func TestPackIsReproducible(t *testing.T) {
	t.Parallel()
	dir := folderOfPackage(t, "a", "1.0.0")
	operationtest.WriteFiles(t, dir, map[string]string{".git/config": "x", "node_modules/x.js": "x", "old.aam": "x",
		"skills/look/dist/x": "x", ".aam/x": "x"})
	must.Do(t, os.Chmod(filepath.Join(dir, "skills/look/run.sh"), 0o744))
	first, err := Pack(dir)
	must.Do(t, err)
	must.Do(t, os.Chtimes(filepath.Join(dir, manifestName), time.Now(), time.Now().Add(-time.Hour)))
	second, err := Pack(dir)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same files differ: %v", err)
	}
	packed, err := Unpack(first)
	must.Do(t, err)
	var got []string
	for _, f := range packed.Files {
		got = append(got, fmt.Sprintf("%s %v", f.Name, f.Executable))
	}
	if diff := cmp.Diff([]string{"aam.yaml false", "skills/look/SKILL.md false", "skills/look/run.sh true"},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	if _, err := Pack(dir); codeOfError(err) != ManifestInvalid || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
}

// archiveOf makes an archive of entries.
func archiveOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, h := range entries {
		content := strings.Repeat("x", int(h.Size))
		if h.Name == manifestName {
			content = manifestOf("a", "1.0.0")
			h.Size = int64(len(content))
		}
		must.Do(t, out.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			if _, err := out.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	must.Do(t, out.Close())
	must.Do(t, zip.Close())
	return b.Bytes()
}

func TestUnpackRefusesWhatBreaksTheRules(t *testing.T) {
	t.Parallel()
	manifest, file := manifestHeader(), fileHeader
	many := []tar.Header{manifest}
	for i := range maxEntries {
		many = append(many, file(fmt.Sprintf("f%d", i)))
	}
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive": {[]byte("PK"), "not a tar.gz"}, "cut off": {archiveOf(t, manifest)[:60], "cannot be read"},
		"empty":       {archiveOf(t), "no aam.yaml"},
		"dots":        {archiveOf(t, manifest, file("../x")), "leads out"},
		"dots within": {archiveOf(t, manifest, file("a/../../x")), "leads out"},
		"absolute":    {archiveOf(t, manifest, file("/x")), "not relative"},
		"backslash":   {archiveOf(t, manifest, file(`a\..\x`)), "not a path"},
		"drive":       {archiveOf(t, manifest, file("c:x")), "not relative"},
		"twice":       {archiveOf(t, manifest, file("a"), file("a")), "twice"},
		"link": {archiveOf(t, manifest, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "a"}),
			"link or a device"},
		"hard link": {archiveOf(t, manifest, tar.Header{Typeflag: tar.TypeLink, Name: "l", Linkname: "a"}),
			"link or a device"},
		"device": {archiveOf(t, manifest, tar.Header{Typeflag: tar.TypeChar, Name: "d"}), "link or a device"},
		"many":   {archiveOf(t, many...), "more than 10000 entries"},
		"a bomb": {archiveOf(t, manifest, tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: maxUnpackedBytes + 1}),
			"unpacks to more"},
		"a long name": {archiveOf(t, manifest, file(strings.Repeat("a/", 600)+"b")), "more than 1024 bytes"},
	} {
		if _, err := Unpack(c.archive); codeOfError(err) != IntegrityError || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Unpack(archiveOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}, manifest,
		tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, file("./a/b"))); err != nil {
		t.Errorf("a sound one: %v", err)
	}
}

func TestPublishAndReadBack(t *testing.T) {
	t.Parallel()
	r := Registry{Name: "dev", Dir: t.TempDir()}
	publish(t, r, "latest", "@s/p", "1.0.0")
	publish(t, r, "beta", "@s/p", "1.1.0-beta.1", "other", "^1.0.0")
	m, err := r.readMetadata(Name{"s", "p"})
	must.Do(t, err)
	if diff := cmp.Diff(map[string]string{"latest": "1.0.0", "beta": "1.1.0-beta.1"}, m.DistTags); diff != "" ||
		len(m.Versions) != 2 {
		t.Errorf("%+v\n%s", m, diff)
	}
	packed, err := r.Archive(Name{"s", "p"}, m.Versions[1])
	if err != nil || packed.Manifest.Version != "1.1.0-beta.1" || packed.Manifest.Dependencies["other"] != "^1.0.0" {
		t.Errorf("%+v, %v", packed, err)
	}
	if err := tryPublish(t, r, "latest", "@s/p", "1.0.0"); codeOfError(err) != VersionExists {
		t.Errorf("again: %v", err)
	}
	if err := tryPublish(t, r, "latest", "s--p", "1.0.0"); codeOfError(err) != NameConflict {
		t.Errorf("another name for the same folder: %v", err)
	}
	if _, err := r.readMetadata(Name{"", "s--p"}); codeOfError(err) != PackageNotFound {
		t.Errorf("the other name: %v", err)
	}
	for _, tag := range []string{"", "1.0.0", "^1", "a b", "*"} {
		if err := tryPublish(t, r, tag, "q", "1.0.0"); codeOfError(err) != InvalidArgument {
			t.Errorf("tag %q: %v", tag, err)
		}
	}
	index, err := r.Index()
	if err != nil || len(index.Packages) != 1 || index.Packages[0].Latest != "1.0.0" ||
		cmp.Diff([]string{"skill"}, index.Packages[0].ArtifactTypes) != "" {
		t.Errorf("%+v, %v", index, err)
	}
	must.Do(t, os.WriteFile(filepath.Join(r.Dir, "packages/s--p/versions/1.0.0.aam"), []byte("x"), 0o644))
	if _, err := r.Archive(Name{"s", "p"}, m.Versions[0]); codeOfError(err) != IntegrityError {
		t.Errorf("an archive that was changed: %v", err)
	}
	if _, err := (Registry{Name: "gone", Dir: filepath.Join(r.Dir, "gone")}).Index(); codeOfError(
		err) != RegistryUnreachable || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("a registry that is gone: %v", err)
	}
}

// A publisher that is killed leaves an unlisted archive; the next one writes it again, and repairs the index.
func TestAPublicationThatWasCutOffCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	r := Registry{Name: "dev", Dir: t.TempDir()}
	operationtest.WriteFiles(t, r.Dir, map[string]string{"packages/p/versions/1.0.0.aam": "half",
		"packages/p/versions/.new-1": "half", "index.yaml": "packages: [{name: gone, latest: 1.0.0}]\n"})
	publish(t, r, "latest", "p", "1.0.0")
	index, err := r.Index()
	if err != nil || len(index.Packages) != 1 || index.Packages[0].Name != "p" {
		t.Errorf("%+v, %v", index, err)
	}
}

func TestManyPublishAtOnce(t *testing.T) {
	t.Parallel()
	r := Registry{Name: "dev", Dir: t.TempDir()}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if err := tryPublish(t, r, "latest", fmt.Sprintf("p%d", i%4), fmt.Sprintf("1.%d.0", i/4)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	index, err := r.Index()
	if err != nil || len(index.Packages) != 4 {
		t.Errorf("%+v, %v", index, err)
	}
	for i := range 4 {
		if m, err := r.readMetadata(Name{Bare: fmt.Sprintf("p%d", i)}); err != nil || len(m.Versions) != 4 {
			t.Errorf("%+v, %v", m, err)
		}
	}
}

func resolve(r Registry, specs ...string) (string, error) {
	var parsed []Spec
	for _, text := range specs {
		s, err := parseSpec(text)
		if err != nil {
			return "", err
		}
		parsed = append(parsed, s)
	}
	choices, err := (&resolver{Registries: []Registry{r}}).Resolve(context.Background(), parsed)
	var out []string
	for _, c := range choices {
		out = append(out, c.Name.String()+"@"+c.Version.Version)
	}
	return strings.Join(out, " "), err
}

func TestResolve(t *testing.T) {
	t.Parallel()
	r := Registry{Name: "dev", Dir: t.TempDir()}
	for _, p := range [][]string{
		{"latest", "lib", "1.0.0"}, {"latest", "lib", "1.5.0"}, {"latest", "lib", "2.0.0"}, {"beta", "lib", "3.0.0-beta.1"},
		{"latest", "a", "1.0.0", "lib", "^1.0.0"}, {"latest", "a", "2.0.0", "lib", "^2.0.0"},
		{"latest", "b", "1.0.0", "lib", "~1.0.0"}, {"latest", "c", "1.0.0", "a", "*", "b", "*"},
		{"latest", "x", "1.0.0", "y", "^1.0.0"}, {"latest", "y", "1.0.0", "x", "^1.0.0"},
		{"latest", "broken", "1.0.0", "gone", "*"}, {"latest", "strict", "1.0.0", "lib", "=2.0.0", "b", "1.0.0"},
		{"latest", "want", "1.0.0", "lib", "^9.0.0"},
		{"latest", "new", "2.0.0"}, {"old", "new", "1.0.0"}, {"latest", "new", "1.9.0"}, {"pre", "only", "1.0.0-rc.1"},
	} {
		publish(t, r, p[0], p[1], p[2], p[3:]...)
	}
	for specs, want := range map[string]string{
		"lib": "lib@2.0.0", "lib@^1.0.0": "lib@1.5.0", "lib@beta": "lib@3.0.0-beta.1", "lib@*": "lib@2.0.0",
		"lib@3.0.0-beta.1": "lib@3.0.0-beta.1",
		"a":                "lib@2.0.0 a@2.0.0", "c": "lib@1.0.0 a@1.0.0 b@1.0.0 c@1.0.0", "a b": "lib@1.0.0 a@1.0.0 b@1.0.0",
		"x": "y@1.0.0 x@1.0.0", "a lib@1.0.0": "lib@1.0.0 a@1.0.0",
		"new": "new@1.9.0", "new@>=1.0.0": "new@2.0.0", "new@old": "new@1.0.0",
	} {
		if got, err := resolve(r, strings.Fields(specs)...); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", specs, got, err, want)
		}
	}
	for specs, c := range map[string]struct {
		code Code
		text string
	}{
		"gone":        {PackageNotFound, "no registry has a package gone"},
		"lib@^7.0.0":  {PackageNotFound, "no version of lib satisfies ^7.0.0; there are 3.0.0-beta.1, 2.0.0"},
		"broken":      {PackageNotFound, "no registry has the package gone, which broken 1.0.0 depends on"},
		"lib@nightly": {PackageNotFound, "satisfies nightly"},
		"strict": {DependencyConflict,
			"Because strict 1.0.0 needs lib =2.0.0 and b 1.0.0 needs lib ~1.0.0, strict 1.0.0 and b 1.0.0 do not go together."},
		"want": {DependencyConflict,
			"want 1.0.0 needs lib ^9.0.0 (there is none), what is asked for cannot be installed. Of lib there are " +
				"3.0.0-beta.1, 2.0.0, 1.5.0, 1.0.0"},
		"a@2.0.0 b":           {DependencyConflict, "And because a 2.0.0 is asked for and b is asked for"},
		"lib@1.0.0 lib@2.0.0": {DependencyConflict, "Because lib 1.0.0 is asked for and lib 2.0.0 is asked for"},
	} {
		if got, err := resolve(r, strings.Fields(specs)...); codeOfError(err) != c.code ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %q, %v", specs, got, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archiveOf(f, manifestHeader(), fileHeader("a")))
	f.Fuzz(func(t *testing.T, archive []byte) {
		packed, err := Unpack(archive)
		if err != nil {
			return
		}
		for _, file := range packed.Files {
			if badEntry(file.Name) != "" {
				t.Errorf("unpacked %q", file.Name)
			}
		}
	})
}

// The index of other programs has no author; the package's metadata has.
func TestASearchKnowsAuthors(t *testing.T) {
	t.Parallel()
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"index.yaml": "packages: [{name: a, latest: 1.0.0}, {name: b, latest: 1.0.0, author: Index}, {name: " +
			"c, latest: 1.0.0}]\n",
		"packages/a/metadata.yaml": "{name: a, author: Ann, versions: [{version: 1.0.0}]}\n",
		"packages/b/metadata.yaml": "{name: b, author: Bob}\n",
	})
	registries := []Registry{{Name: "r", Dir: dir}}
	found, err := searchIndexes(registries, "", "")
	if err != nil || len(found) != 3 {
		t.Fatalf("%v, %v", found, err)
	}
	authored(registries, found)
	for i, want := range []string{"Ann", "Index", ""} {
		if found[i].Author != want {
			t.Errorf("%s is by %q, want %q", found[i].Name, found[i].Author, want)
		}
	}
}
