package forge

import (
	"slices"
	"testing"
)

func TestLRUForgetsWhatWasNotUsedForLongest(t *testing.T) {
	c := NewLRU[string](3, func(int) int { return 1 })
	for i, key := range []string{"a", "b", "c"} {
		c.Put(key, i)
	}
	if _, found := c.Get("a"); !found {
		t.Fatal("a was forgotten too early")
	}
	c.Put("d", 3)
	var have []string
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, found := c.Get(key); found {
			have = append(have, key)
		}
	}
	if !slices.Equal(have, []string{"a", "c", "d"}) {
		t.Errorf("have %v", have)
	}
}

func TestLRUWeighsItsValues(t *testing.T) {
	c := NewLRU[string](10, func(v int) int { return v })
	c.Put("a", 6)
	c.Put("a", 4)
	c.Put("b", 6)
	if _, found := c.Get("a"); !found || c.total != 10 {
		t.Errorf("a found %v, total %d; want both to fit", found, c.total)
	}
	c.Put("huge", 11)
	if _, found := c.Get("huge"); found || c.total != 10 {
		t.Errorf("huge found %v, total %d; want it left out and the others kept", found, c.total)
	}
}

func TestWhatIsTakenIsForgotten(t *testing.T) {
	c := NewLRU[string, bool](3, nil)
	c.Put("a", true)
	if v, found := c.Take("a"); !v || !found {
		t.Error("a was not found")
	}
	if _, found := c.Take("a"); found || c.total != 0 {
		t.Errorf("a was found twice, total %d", c.total)
	}
}
