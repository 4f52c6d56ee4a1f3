// Package testusers gives tests that run as root numbers of users that no other run of tests on this machine uses.
package testusers

import (
	"net"
	"strconv"
	"sync"
)

// Size is how many numbers a block has.
const Size = 32

// Block is numbers that this process has until it ends. The zero value is ready for use.
type Block struct {
	once  sync.Once
	first int
	held  net.Listener
}

// First returns the first number of the block, which is taken now if it was not. It panics if all are taken.
func (b *Block) First() int {
	b.once.Do(b.take)
	if b.held == nil {
		panic("all numbers of users for tests are taken")
	}
	return b.first
}

// take holds a block by a socket with an abstract name. The kernel gives each name to one process at a time and drops
// it with the process: tests of two checkouts have other numbers, and do not kill each other's processes.
func (b *Block) take() {
	const lowest, highest = 48_000, 52_000
	for first := lowest; first < highest && b.held == nil; first += Size {
		held, err := net.Listen("unix", "@claudeops-test-users-"+strconv.Itoa(first)) //nolint:noctx // it does not wait
		if err == nil {
			b.first, b.held = first, held
		}
	}
}
