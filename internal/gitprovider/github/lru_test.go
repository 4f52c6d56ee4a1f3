package github

import (
	"slices"
	"testing"
)

func TestCacheForgetsWhatWasNotUsedForLongest(t *testing.T) {
	c := newLRU[string](3, func(int) int { return 1 })
	for i, key := range []string{"a", "b", "c"} {
		c.put(key, i)
	}
	if _, found := c.get("a"); !found {
		t.Fatal("a was forgotten too early")
	}
	c.put("d", 3)
	var have []string
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, found := c.get(key); found {
			have = append(have, key)
		}
	}
	if !slices.Equal(have, []string{"a", "c", "d"}) {
		t.Errorf("have %v", have)
	}
}

func TestCacheWeighsItsValues(t *testing.T) {
	c := newLRU[string](10, func(v int) int { return v })
	c.put("a", 6)
	c.put("a", 4)
	c.put("b", 6)
	if _, found := c.get("a"); !found || c.total != 10 {
		t.Errorf("a found %v, total %d; want both to fit", found, c.total)
	}
	c.put("huge", 11)
	if _, found := c.get("huge"); found || c.total != 10 {
		t.Errorf("huge found %v, total %d; want it left out and the others kept", found, c.total)
	}
}
