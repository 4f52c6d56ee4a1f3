package pubgrub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// toy is a world whose versions are numbers from 1 on. A constraint is the numbers that it admits, with commas, or *
// for all.
type toy map[string]Package

func (w toy) Package(name string) (Package, error) { return w[name], nil }

func (w toy) Admits(name, constraint string) (func(int) bool, error) {
	return func(v int) bool {
		return constraint == "*" || slices.Contains(strings.Split(constraint, ","), w[name].Versions[v].Text)
	}, nil
}

// toyOf reads lines such as "a 2: b 1,2; c *", from the lowest version to the highest.
func toyOf(text string) toy {
	w := toy{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		head, tail, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, version, _ := strings.Cut(head, " ")
		p := w[name]
		v := Version{Text: version}
		for need := range strings.SplitSeq(tail, ";") {
			if other, constraint, ok := strings.Cut(strings.TrimSpace(need), " "); ok {
				v.Needs = append(v.Needs, Need{other, constraint})
			}
		}
		p.Versions = append(p.Versions, v)
		w[name] = p
	}
	return w
}

func wishesOf(texts ...string) (out []Wish) {
	for _, text := range texts {
		name, constraint, _ := strings.Cut(text, " ")
		out = append(out, Wish{Need{name, constraint}, text + " is asked for"})
	}
	return out
}

// brute tries all that there is, in the same order: the answer is the first that fits. needed says which needs count;
// nil for all.
func brute(w toy, wishes []Wish, needed func(of string, version int, n Need) bool) map[string]int {
	queue := []Need{}
	for _, wish := range wishes {
		queue = append(queue, wish.Need)
	}
	chosen := map[string]int{}
	var try func(queue []Need, at int) bool
	try = func(queue []Need, at int) bool {
		for ; at < len(queue); at++ {
			n := queue[at]
			admits, _ := w.Admits(n.Package, n.Constraint)
			if v, has := chosen[n.Package]; has {
				if !admits(v) {
					return false
				}
				continue
			}
			order := w[n.Package].Order
			if order == nil {
				for v := len(w[n.Package].Versions) - 1; v >= 0; v-- {
					order = append(order, v)
				}
			}
			for _, v := range order {
				version := w[n.Package].Versions[v]
				if !admits(v) || version.Broken != "" {
					continue
				}
				more := slices.Clone(queue)
				for _, need := range version.Needs {
					if needed == nil || needed(n.Package, v, need) {
						more = append(more, need)
					}
				}
				chosen[n.Package] = v
				if try(more, at+1) {
					return true
				}
				delete(chosen, n.Package)
			}
			return false
		}
		return true
	}
	if try(queue, 0) {
		return chosen
	}
	return nil
}

// randomToy returns a small world with circles, missing packages, and versions that need themselves.
func randomToy(r *rand.Rand) (toy, []Wish) {
	w := toy{}
	packages, versions := 2+r.IntN(6), 1+r.IntN(5)
	names := []string{}
	for i := range packages {
		names = append(names, string(rune('a'+i)))
	}
	constraint := func() string {
		if r.IntN(6) == 0 {
			return "*"
		}
		var out []string
		from := 1 + r.IntN(versions)
		for v := from; v <= min(versions, from+r.IntN(3)); v++ {
			out = append(out, strconv.Itoa(v))
		}
		return strings.Join(out, ",")
	}
	for _, name := range names[:packages-r.IntN(2)] {
		var p Package
		for v := range 1 + r.IntN(versions) {
			one := Version{Text: strconv.Itoa(v + 1)}
			for _, other := range names {
				if r.IntN(packages) == 0 && (other != name || r.IntN(10) == 0) {
					one.Needs = append(one.Needs, Need{other, constraint()})
				}
			}
			if r.IntN(20) == 0 {
				one.Broken = "is broken"
			}
			p.Versions = append(p.Versions, one)
		}
		if r.IntN(3) == 0 {
			p.Order = r.Perm(len(p.Versions))
		}
		w[name] = p
	}
	var wishes []Wish
	for range 1 + r.IntN(3) {
		n := Need{names[r.IntN(packages)], constraint()}
		wishes = append(wishes, Wish{n, fmt.Sprintf("%s %s is asked for", n.Package, n.Constraint)})
	}
	return w, wishes
}

// hold compares Solve's answer for a world with that of an exhaustive search.
func hold(t *testing.T, w toy, wishes []Wish) (refused bool) {
	t.Helper()
	got, err := Solve(context.Background(), w, wishes)
	want := brute(w, wishes, nil)
	var refusal *Refusal
	if errors.As(err, &refusal) != (want == nil) || err != nil && refusal == nil || !maps.Equal(got, want) {
		t.Fatalf("%v of %v: %v, %v; want %v", wishes, w, got, err, want)
	}
	if refusal == nil {
		return false
	}
	// The facts by themselves are a reason, and none of them is too much.
	for leftOut := -1; leftOut < len(refusal.Facts); leftOut++ {
		facts := slices.Clone(refusal.Facts)
		if leftOut >= 0 {
			facts = slices.Delete(facts, leftOut, leftOut+1)
		}
		only := toy{}
		for name, p := range w {
			p.Versions = slices.Clone(p.Versions)
			for i := range p.Versions {
				p.Versions[i].Broken = ""
				if slices.ContainsFunc(facts, func(f Fact) bool {
					return f.Of == name && f.broken != "" && slices.Contains(f.Versions, p.Versions[i].Text)
				}) {
					p.Versions[i].Broken = "is broken"
				}
			}
			only[name] = p
		}
		var asked []Wish
		for _, f := range facts {
			if f.Wish != nil {
				asked = append(asked, *f.Wish)
			}
		}
		found := brute(only, asked, func(of string, version int, n Need) bool {
			return slices.ContainsFunc(facts, func(f Fact) bool {
				return f.Of == of && f.Need == n && slices.Contains(f.Versions, w[of].Versions[version].Text)
			})
		})
		if (found != nil) != (leftOut >= 0) {
			t.Fatalf("%v of %v: without fact %d of %+v: %v", wishes, w, leftOut, refusal.Facts, found)
		}
	}
	if len(refusal.Reasons) == 0 {
		t.Fatal("no reasons")
	}
	return true
}

func TestItAnswersAsTryingEverythingDoes(t *testing.T) {
	refused := 0
	const worlds = 20_000
	for seed := range uint64(worlds) {
		w, wishes := randomToy(rand.New(rand.NewPCG(seed, 1)))
		if hold(t, w, wishes) {
			refused++
		}
	}
	if refused < worlds/20 || refused > worlds*19/20 {
		t.Errorf("%d of %d were refused: that tells little", refused, worlds)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		w, wishes := randomToy(rand.New(rand.NewPCG(a, b)))
		hold(t, w, wishes)
	})
}

func TestReasons(t *testing.T) {
	for name, c := range map[string]struct{ world, wishes, want string }{
		"two wishes": {"a 1: c 1\nb 1: c 2\nc 1\nc 2", "a 1/b 1", `
			Because a 1 needs c 1 and b 1 needs c 2, a 1 and b 1 do not go together.
			And because a 1 is asked for and b 1 is asked for, what is asked for cannot be installed.`},
		"one wish": {"a 1: c 1; b 1\nb 1: c 2\nc 1\nc 2", "a 1", `
			Because a 1 needs b 1 and b 1 needs c 2, a 1 needs c 2.
			And because a 1 is asked for and a 1 needs c 1, what is asked for cannot be installed.`},
		"nothing to need": {"a 1: c 3\na 2: c 3\na 3: d 1\nc 1", "a *", `
			Because a 3 needs d 1 (there is no d) and a 1 or 2 needs c 3 (there is none), no version of a can be installed.
			And because a * is asked for, what is asked for cannot be installed.`},
		"more versions": {"a 1: c 1\na 2: c 1\na 3: c 2; b 1\na 4: c 2\nb 1: c 3\nb 2\nc 1: d 1\nc 2: d 1\nc 3\nd 1: e 1\ne 2\ne 1", "a 1,2,3,4/e 2", `
			Because a 3 or 4 needs c 2 and a 1 or 2 needs c 1, every version of a needs c 1 or 2.
			And because c 1 or 2 needs d 1 and d 1 needs e 1, every version of a needs e 1.
			And because a 1,2,3,4 is asked for and e 2 is asked for, what is asked for cannot be installed.`},
		"a number": {"a 1: x 1\na 2: x 2\nb 1: x 2\nb 2: x 1\nc 1: x 1; y 1\nc 2: x 2; y 2\ny 1: a 2\ny 2: a 1\nx 1\nx 2", "a */c *", `
			Because a 2 needs x 2 and y 1 needs a 2, y 1 needs x 2.
			And because c 1 needs x 1 and c 1 needs y 1, c 1 cannot be installed (1).
			Because y 2 needs a 1 and a 1 needs x 1, y 2 needs x 1.
			And because c 2 needs x 2 and c 2 needs y 2, c 2 cannot be installed.
			And because c 1 cannot be installed (1), no version of c can be installed.
			And because c * is asked for, what is asked for cannot be installed.`},
		"two wishes for one": {"a 1\na 2", "a 1/a 2",
			"Because a 1 is asked for and a 2 is asked for, what is asked for cannot be installed."},
		"no such package": {"a 1", "b *",
			"B * is asked for (there is no b), so that what is asked for cannot be installed."},
		"a wish that is unmet": {"a 1", "a 2",
			"A 2 is asked for (there is none), so that what is asked for cannot be installed."},
		"itself": {"a 1: a 2\na 2: a 1", "a *", `
			Because a 2 needs a 1 and a 1 needs a 2, no version of a can be installed.
			And because a * is asked for, what is asked for cannot be installed.`},
	} {
		_, err := Solve(t.Context(), toyOf(c.world), wishesOf(strings.Split(c.wishes, "/")...))
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
		if got := strings.Join(refusal.Reasons, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// pinned is eight packages of twelve versions, each of which needs the next at its own version or one beside it; the
// caller pins the last at one that nothing leads to if refuted.
func pinned(refuted bool) (toy, []Wish) {
	w := toy{}
	for i := range 8 {
		var p Package
		for v := 1; v <= 12; v++ {
			one := Version{Text: strconv.Itoa(v)}
			for j := i + 1; j < 8; j++ {
				constraint := fmt.Sprintf("%d,%d", v, v%12+1)
				if refuted && j == 7 {
					constraint = fmt.Sprintf("%d,%d", (v+5)%11+1, (v+6)%11+1)
				}
				one.Needs = append(one.Needs, Need{"p" + strconv.Itoa(j), constraint})
			}
			p.Versions = append(p.Versions, one)
		}
		w["p"+strconv.Itoa(i)] = p
	}
	return w, wishesOf("p0 *", "p1 *", "p2 *", "p3 *", "p7 12")
}

func TestAPinIsSolvedOrRefutedAtOnce(t *testing.T) {
	for _, refuted := range []bool{false, true} {
		w, wishes := pinned(refuted)
		_, err := Solve(t.Context(), w, wishes)
		var refusal *Refusal
		if errors.As(err, &refusal) != refuted || err != nil && refusal == nil {
			t.Errorf("%v: %v", refuted, err)
		}
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	w, wishes := pigeons(30)
	if _, err := Solve(ctx, w, wishes); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// pigeons returns a problem that no search of this kind refutes soon: n packages, each of which needs one of n-1 holes
// of its own.
func pigeons(n int) (toy, []Wish) {
	w := toy{}
	var wishes []string
	for h := range n - 1 {
		var p Package
		for i := range n {
			p.Versions = append(p.Versions, Version{Text: strconv.Itoa(i + 1)})
		}
		w[fmt.Sprint("hole", h)] = p
	}
	for i := range n {
		var p Package
		for h := range n - 1 {
			p.Versions = append(p.Versions, Version{Text: strconv.Itoa(h + 1),
				Needs: []Need{{fmt.Sprint("hole", h), strconv.Itoa(i + 1)}}})
		}
		w[fmt.Sprint("pigeon", i)] = p
		wishes = append(wishes, fmt.Sprintf("pigeon%d *", i))
	}
	return w, wishesOf(wishes...)
}
