//go:build unix && !linux

package session

import "syscall"

// endWithParent needs Linux: elsewhere the CLI goes on when this process is killed, until it writes its next line.
func endWithParent(*syscall.SysProcAttr) {}

// Conceal needs Linux.
func Conceal() {}

// carrying needs Linux.
func carrying(string) []int { return nil }

// hold needs Linux: elsewhere the CLI's processes cannot be told from it.
func hold(int) bool { return false }

func letGo(int) {}

// left returns the group if it has processes still; what left the group is not found.
func left(group int, _ string) []int {
	if syscall.Kill(-group, 0) != nil {
		return nil
	}
	return []int{-group}
}
