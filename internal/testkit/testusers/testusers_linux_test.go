package testusers

import "testing"

func TestNoTwoBlocksShareANumber(t *testing.T) {
	var one, other Block
	if a, b := one.First(), other.First(); a == b || a != one.First() || (a-b)%Size != 0 {
		t.Fatalf("the blocks begin at %d and %d", a, b)
	}
	if err := one.held.Close(); err != nil { // as at the end of its process
		t.Fatal(err)
	}
	var third Block
	if got := third.First(); got != one.first {
		t.Errorf("what was given back is not taken again: %d, want %d", got, one.first)
	}
}
