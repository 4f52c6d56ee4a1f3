package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// manyPackages is a registry of so many packages with ten versions each, every one of which depends on up to two
// others.
func manyPackages(b *testing.B, count int) Registry {
	b.Helper()
	r := Registry{Name: "dev", Dir: b.TempDir()}
	lock, err := r.lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer lock.close()
	for i := range count {
		m := Metadata{
			Name: fmt.Sprintf("package-%05d", i), Description: fmt.Sprintf("Reads and writes files of kind %d", i%97),
			Author: "ann", Keywords: []string{fmt.Sprintf("kind%d", i%97)},
			ArtifactTypes: []string{"skill"}, DistTags: map[string]string{"latest": "1.9.0"},
		}
		for v := range 10 {
			p := Published{Version: fmt.Sprintf("1.%d.0", v), Published: "2026-03-01T00:00:00Z", Checksum: checksum(nil),
				Dependencies: map[string]string{}}
			for _, other := range []int{i + 1, 2*i + 1} {
				if other < count {
					p.Dependencies[fmt.Sprintf("package-%05d", other)] = fmt.Sprintf("^1.%d.0", v/2)
				}
			}
			m.Versions = append(m.Versions, p)
		}
		if err := lock.writeYAML(metadataPath(Name{Bare: m.Name}), m); err != nil {
			b.Fatal(err)
		}
	}
	if err := lock.updateIndex(time.Now()); err != nil {
		b.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(r.Dir, "index.yaml"), old, old); err != nil {
		b.Fatal(err)
	}
	return r
}

func BenchmarkRegistry(b *testing.B) {
	r := manyPackages(b, 10_000)
	b.Run("search cold", func(b *testing.B) {
		for b.Loop() {
			if found, err := search([]Registry{r}, "kind 5", ""); err != nil || len(found) == 0 {
				b.Fatal(len(found), err)
			}
		}
	})
	b.Run("search warm", func(b *testing.B) {
		r := r
		r.cache = &indexCache{known: map[string]cachedIndex{}}
		if _, err := search([]Registry{r}, "kind 5", ""); err != nil { // which reads the index
			b.Fatal(err)
		}
		for b.Loop() {
			if found, err := search([]Registry{r}, "kind 5", ""); err != nil || len(found) == 0 {
				b.Fatal(len(found), err)
			}
		}
	})
	b.Run("resolve 1000", func(b *testing.B) {
		for b.Loop() {
			choices, err := (&resolver{Registries: []Registry{r}}).Resolve(b.Context(),
				[]Spec{{Name: Name{Bare: "package-09000"}}})
			if err != nil || len(choices) != 1000 {
				b.Fatal(len(choices), err)
			}
		}
	})
}

// BenchmarkDiamonds chooses versions of 500 packages of 50 versions, as a registry has them on disk: each version needs
// three other packages in a range about its own, so that each package is needed by several, and its highest versions
// fit only some.
func BenchmarkDiamonds(b *testing.B) {
	const packages, versions = 500, 50
	r := Registry{Name: "dev", Dir: b.TempDir()}
	lock, err := r.lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer lock.close()
	for i := range packages {
		m := Metadata{Name: fmt.Sprintf("p%03d", i)}
		for v := range versions {
			p := Published{Version: fmt.Sprintf("1.%d.0", v), Checksum: checksum(nil), Dependencies: map[string]string{}}
			for _, other := range []int{i + 1, i + 7, 2*i + 1} {
				if other < packages {
					p.Dependencies[fmt.Sprintf("p%03d", other)] = fmt.Sprintf(">=1.%d.0,<=1.%d.0", max(0, v-1-(i+other)%4),
						v+1-(i*other)%2)
				}
			}
			m.Versions = append(m.Versions, p)
		}
		if err := lock.writeYAML(metadataPath(Name{Bare: m.Name}), m); err != nil {
			b.Fatal(err)
		}
	}
	if err := lock.updateIndex(time.Now()); err != nil {
		b.Fatal(err)
	}
	b.Run("500 of 50", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			choices, err := (&resolver{Registries: []Registry{r}}).Resolve(b.Context(), []Spec{{Name: Name{Bare: "p000"}}})
			if err != nil || len(choices) != packages {
				b.Fatal(len(choices), err)
			}
		}
	})
}

func BenchmarkInstall500(b *testing.B) {
	bench := newBench(b)
	specs := make([]string, 0, 500)
	w := worldIn(filepath.Dir(bench.settings.Project))
	for i := range 500 {
		name := fmt.Sprintf("skill-%03d", i)
		if err := w.publishOne(name, "1.0.0"); err != nil {
			b.Fatal(err)
		}
		specs = append(specs, name)
	}
	for b.Loop() {
		done, err := bench.service.Install(context.Background(), Order{Packages: specs, Force: true, Platform: "claude"})
		if err != nil || len(done.Installed) != 500 {
			b.Fatal(len(done.Installed), len(done.Failed), err)
		}
	}
}
